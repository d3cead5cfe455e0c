#include "specllama/media.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "files/sha256.h"
#include "specllama/error.h"

namespace specllama {

struct Media::Data {
    int width = 0;
    int height = 0;
    std::vector<std::uint8_t> rgb;
    std::vector<float> samples;
    std::string id;
};

namespace {

// The width makes images of the same bytes differ.
std::string hash(int width, std::span<const std::uint8_t> bytes) {
    const Sha256 content = sha256(bytes);
    std::vector<std::uint8_t> all(content.begin(), content.end());
    for (int shift = 0; shift < 32; shift += 8)
        all.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(width) >> shift));
    std::string digits;
    for (const std::uint8_t byte : sha256(all))
        for (const int half : {byte >> 4, byte & 15}) digits += "0123456789abcdef"[half];
    return digits;
}

}  // namespace

Media Media::image(std::span<const std::uint8_t> rgb, int width, int height) {
    if (width < 1 || height < 1 ||
        rgb.size() !=
            std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))
        throw InvalidArgument("An image of " + std::to_string(width) + " x " +
                              std::to_string(height) +
                              " pixels needs 3 bytes per pixel, but `rgb` has " +
                              std::to_string(rgb.size()) + " bytes.");
    auto data = std::make_shared<Data>();
    data->width = width;
    data->height = height;
    data->rgb.assign(rgb.begin(), rgb.end());
    data->id = hash(width, rgb);
    return Media(std::move(data));
}

Media Media::audio(std::span<const float> samples) {
    if (samples.empty()) throw InvalidArgument("A sound has no samples; leave it out.");
    if (!std::ranges::all_of(samples, [](float one) { return std::isfinite(one); }))
        throw InvalidArgument("A sound has samples that are not finite numbers.");
    auto data = std::make_shared<Data>();
    data->samples.assign(samples.begin(), samples.end());
    std::vector<std::uint8_t> bytes(samples.size_bytes());
    std::memcpy(bytes.data(), samples.data(), bytes.size());
    data->id = hash(0, bytes);
    return Media(std::move(data));
}

bool Media::is_audio() const { return data_->rgb.empty(); }
int Media::width() const { return data_->width; }
int Media::height() const { return data_->height; }
std::span<const std::uint8_t> Media::rgb() const { return data_->rgb; }
std::span<const float> Media::samples() const { return data_->samples; }
const std::string& Media::id() const { return data_->id; }

}  // namespace specllama
