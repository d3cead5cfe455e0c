#include "specllama/image_file.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "files/regular_file.h"
#include "llama/backend.h"
#include "mtmd-helper.h"
#include "mtmd.h"
#include "specllama/error.h"
#include "vision/vision.h"

namespace specllama {

namespace {

constexpr std::int64_t kMostRatio = 200;

using std::string_view_literals::operator""sv;
using Bytes = std::span<const std::uint8_t>;

struct Size {
    std::int64_t width = 0;
    std::int64_t height = 0;
};

// A number of n bytes at a place; 0 where the file ends before.
std::uint32_t big_endian(Bytes data, std::size_t at, std::size_t n) {
    std::uint32_t number = 0;
    for (std::size_t i = at; i < at + n; ++i)
        number = number << 8 | (i < data.size() ? data[i] : 0U);
    return number;
}
std::uint32_t little_endian(Bytes data, std::size_t at, std::size_t n) {
    std::uint32_t number = 0;
    for (std::size_t i = at + n; i-- > at;) number = number << 8 | (i < data.size() ? data[i] : 0U);
    return number;
}

// The size in the first frame header. stb_image finds it in the same way: it skips segments by
// their lengths, and other bytes between them.
Size jpeg_size(Bytes data) {
    for (std::size_t at = 2; at + 9 < data.size();) {
        const std::uint8_t marker = data[at + 1];
        if (data[at] != 0xff || marker == 0xff) {
            ++at;
        } else if (marker == 0xc0 || marker == 0xc1 || marker == 0xc2) {
            return {big_endian(data, at + 7, 2), big_endian(data, at + 5, 2)};
        } else {
            at += 2 + std::max(big_endian(data, at + 2, 2), 2U);
        }
    }
    return {};
}

Size bmp_size(Bytes data) {
    constexpr std::uint32_t kOldHeader = 12;
    if (little_endian(data, 14, 4) == kOldHeader)
        return {little_endian(data, 18, 2), little_endian(data, 20, 2)};
    // Rows from the top down have a negative height.
    const auto height = std::bit_cast<std::int32_t>(little_endian(data, 22, 4));
    return {little_endian(data, 18, 4), std::abs(std::int64_t{height})};
}

// The size in the header; nullopt: the format is not supported.
std::optional<Size> size_of(Bytes data) {
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    // The header comes first, except in Apple's variant, which is not supported.
    if (text.starts_with("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"sv))
        return Size{big_endian(data, 16, 4), big_endian(data, 20, 4)};
    if (text.starts_with("\xff\xd8\xff")) return jpeg_size(data);
    if (text.starts_with("GIF87a") || text.starts_with("GIF89a"))
        return Size{little_endian(data, 6, 2), little_endian(data, 8, 2)};
    if (text.starts_with("BM")) return bmp_size(data);
    return {};
}

std::vector<std::byte> read(const std::string& path) {
    try {
        return read_regular(path, kMostImageBytes);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::file_too_large)
            throw InvalidArgument(path + " has more than " + std::to_string(kMostImageBytes) +
                                  " bytes; make the image smaller.");
        throw InvalidArgument(path + " cannot be read: " + error.code().message() + ".");
    }
}

}  // namespace

void check_image_size(const std::string& name, std::int64_t width, std::int64_t height) {
    const auto fail = [&](const std::string& why) {
        throw InvalidArgument(name + " has " + std::to_string(width) + " x " +
                              std::to_string(height) + " pixels" + why);
    };
    const auto [less, more] = std::minmax(width, height);
    if (less < 1) fail("; give an image that has some.");
    if (more > kMostImagePixels / less)
        fail(", more than " + std::to_string(kMostImagePixels) + "; make it smaller.");
    if (more > kMostRatio * less)
        fail(", one side more than " + std::to_string(kMostRatio) + " times the other; crop it.");
}

Media read_image(const std::string& path) {
    const std::vector<std::byte> file = read(path);
    const Bytes data(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
    const std::optional<Size> size = size_of(data);
    if (!size) throw InvalidArgument(path + " is not a PNG, JPEG, GIF or BMP file; convert it.");
    check_image_size(path, size->width, size->height);
    ensure_mtmd();
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    mtmd_helper_init_opt options = mtmd_helper_init_opt_default();
    // Without this, ffmpeg would be started to read a damaged image as a video.
    options.video_params.ffmpeg_bin_dir = "/dev/null";
    const mtmd_helper_bitmap_wrapper found =
        mtmd_helper_bitmap_init_from_buf(nullptr, data.data(), data.size(), false, options);
    const mtmd_helper::video_ptr video(found.video_ctx);
    const mtmd::bitmap bitmap(found.bitmap);
    if (bitmap.ptr == nullptr || video != nullptr)
        throw InvalidArgument(path + " is a damaged image file; save it anew.");
    return Media::image({bitmap.data(), bitmap.n_bytes()}, static_cast<int>(bitmap.nx()),
                        static_cast<int>(bitmap.ny()));
}

}  // namespace specllama
