#include "runtime/drafting/draft_types.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "device/type_speed.h"
#include "files/cache_folder.h"
#include "files/file_cache.h"
#include "fnv.h"
#include "llama/backend.h"
#include "llama/quantize.h"
#include "specllama/error.h"
#include "system/clock.h"
#include "system/low_priority.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostBytes = 4096 * kMiB;  // of all copies
// Free disk space that an automatic copy must leave.
constexpr std::uint64_t kLeftBytes = 1024 * kMiB;

constexpr std::uint64_t kLeastRatio = 4;  // of the target's weights to the draft model's
constexpr double kWorth = 1.15;

// A copy is made now if that takes at most this long. Measured with a 0.5B model in Q4_K_M on an
// AMD EPYC: 3 to 5 ns per weight and thread, and about 200 MB/s for the disk.
constexpr double kMostSeconds = 10;
constexpr double kSecondsPerWeight = 5e-9;
constexpr double kBytesPerSecond = 2e8;

// Without IQ4_NL, which is as fast as Q4_0 and a little closer to the original, but takes a hundred
// times as long to make: it is used only on request.
constexpr std::array kAutomatic = {GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0};
constexpr std::array kTypes = {GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL};

ggml_type type_named(const std::string& name) {
    return *std::ranges::find_if(kTypes,
                                 [&](ggml_type type) { return name == ggml_type_name(type); });
}

FileCache copies() { return {cache_folder() / "drafts", kMostBytes}; }

// Size of a copy.
struct Size {
    double weights = 0;
    std::uint64_t bytes = 0;
};
Size size_in(const Header& draft, ggml_type type) {
    Size size;
    std::uint64_t now = 0;
    for (const Matrix& matrix : draft.matrices) {
        size.weights += static_cast<double>(matrix.n_in * matrix.n_out * matrix.n_slices);
        now += matrix.n_bytes();
    }
    const auto block = static_cast<double>(ggml_type_size(type));
    const auto n_block = static_cast<double>(ggml_blck_size(type));
    // The rest keeps its size, or gets smaller.
    const std::uint64_t rest = draft.weights.total - std::min(now, draft.weights.total);
    size.bytes = static_cast<std::uint64_t>(size.weights * block / n_block) + rest;
    return size;
}

double seconds_to_convert(const Header& draft, ggml_type type, int n_threads) {
    const Size size = size_in(draft, type);
    return size.weights * kSecondsPerWeight / n_threads +
           static_cast<double>(size.bytes) / kBytesPerSecond;
}

// The share of the weights in matrices of some kind.
template <typename Kind>
double share(const Header& draft, Kind is_so) {
    double some = 0;
    double all = 0;
    for (const Matrix& matrix : draft.matrices) {
        const auto n = static_cast<double>(matrix.n_in * matrix.n_out * matrix.n_slices);
        all += n;
        if (is_so(matrix)) some += n;
    }
    return all > 0 ? some / all : 0;
}

// Whether all matrices that llama.cpp converts have this type: it does not convert routers of
// experts, or rows that do not divide into blocks.
bool is_in(const Header& draft, ggml_type type) {
    constexpr double kMost = 0.9;
    return share(draft, [&](const Matrix& matrix) { return matrix.type == type; }) > kMost;
}

// Why its matrices cannot have another type, as a part of a sentence; "": they can.
std::string fault(const Header& draft) {
    constexpr double kFew = 0.1;
    const auto misfits = [](const Matrix& matrix) { return matrix.n_in % 32 != 0; };
    return share(draft, misfits) < kFew
               ? ""
               : "the rows of its matrices do not divide into blocks of 32 numbers";
}

// Identifies a file's content without reading all of it, by its size, its time, and a hash of its
// beginning, its end, and some parts in between.
std::string identity(const std::string& path) {
    constexpr int kParts = 16;
    constexpr std::uint64_t kPart = 4096;
    std::error_code error;
    const std::uint64_t size = fs::file_size(path, error);
    if (error) throw std::system_error(error);
    const std::chrono::nanoseconds time = fs::last_write_time(path, error).time_since_epoch();
    if (error) throw std::system_error(error);
    std::ifstream file(path, std::ios::binary);
    std::uint64_t hash = kFnvBasis;
    std::string part(kPart, '\0');
    for (std::uint64_t i = 0; i < kParts; ++i) {
        const std::uint64_t from = size > kPart ? (size - kPart) / (kParts - 1) * i : 0;
        file.seekg(static_cast<std::streamoff>(from));
        file.read(part.data(), static_cast<std::streamsize>(std::min(kPart, size)));
        hash = fnv1a(part, hash);
    }
    return std::to_string(size) + ", " + std::to_string(time.count()) + ", " + std::to_string(hash);
}

// Name of the copy of a draft model in a type. Its first part is for human readers.
std::string name_of(const Header& draft, ggml_type type) {
    std::string key = "1";  // version of this format
    for (const std::string& file : draft.files) key += "; " + identity(file);
    char hash[32];
    std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(fnv1a(key)));
    constexpr std::size_t kLongest = 80;
    return fs::path(draft.path).stem().string().substr(0, kLongest) + "-" + ggml_type_name(type) +
           "-" + hash + ".gguf";
}

// Whether a file is a valid copy of its original. A truncated file or a damaged header is refused;
// other damage changes drafts, and so the speed, but not the output.
bool is_copy_of(const Header& draft, const std::string& path, ggml_type type) try {
    const Header copy = check_gguf(path);
    return copy.architecture == draft.architecture && copy.n_vocab == draft.n_vocab &&
           copy.width == draft.width && copy.layers.size() == draft.layers.size() &&
           copy.matrices.size() == draft.matrices.size() && is_in(copy, type);
} catch (const ModelError&) {
    return false;
}

// Path of the existing copy; "": none.
std::string find_copy(const Header& draft, ggml_type type) {
    const FileCache cache = copies();
    const std::string name = name_of(draft, type);
    const fs::path path = cache.find(name);
    if (path.empty()) return "";
    if (is_copy_of(draft, path.string(), type)) return path.string();
    cache.remove(name);
    return "";
}

// The beginning of an error.
std::string cannot_convert(const Header& draft, ggml_type type) {
    return "Cannot convert " + draft.path + " to " + ggml_type_name(type) + ": ";
}

std::string make_copy(const Header& draft, ggml_type type, int n_threads,
                      const ProgressFunction& progress) {
    const FileCache cache = copies();
    const std::uint64_t bytes = size_in(draft, type).bytes;
    const std::uint64_t free = cache.writable() ? cache.free_bytes() : 0;
    if (free > 0 && free < bytes)
        throw ModelError(cannot_convert(draft, type) + "it takes " + std::to_string(bytes / kMiB) +
                         " MiB in " + cache.folder().string() + ", where " +
                         std::to_string(free / kMiB) + " MiB are free.");
    const Stopwatch watch;
    const fs::path path = cache.add(name_of(draft, type), [&](const std::string& fresh) {
        quantize(draft.path, fresh, type, n_threads, progress);
        if (!is_copy_of(draft, fresh, type))
            throw ModelError(
                cannot_convert(draft, type) +
                "llama.cpp left its matrices in other types, or wrote a damaged file.");
    });
    char seconds[16];
    std::snprintf(seconds, sizeof(seconds), "%.1f", watch.seconds());
    warn("Converted the draft model in " + std::string(seconds) + " s: " + path.string());
    return path.string();
}

// Why a draft model is not converted automatically, as a part of a sentence; "": it can be.
std::string obstacle(const Header& draft, const DraftUse& use) {
    if (draft.weights.total < kLeastTypedBytes) return "it is small";
    if (use.target_bytes == 0) return "the target's size is not known";
    if (draft.weights.total > use.target_bytes / kLeastRatio)
        return "it has more than a quarter of the target's size";
    if (std::string reason = fault(draft); !reason.empty()) return reason;
    if (cache_folder().empty()) return "there is no folder for the copy (SPECLLAMA_CACHE)";
    if (!copies().writable()) return copies().folder().string() + " cannot be written to";
    return "";
}

std::string factor_text(double factor) {
    char text[16];
    std::snprintf(text, sizeof(text), "%.2f", factor);
    return text;
}

DraftTypes keep(const Header& draft, const std::string& reason) {
    inform("The draft model keeps its types: " + reason + ".");
    return {.header = draft, .later = nullptr};
}

DraftTypes choose_by_speed(const Header& draft, const DraftUse& use,
                           const ProgressFunction& progress) {
    if (use.on_gpu) return keep(draft, "it is on a GPU");
    if (const std::string reason = obstacle(draft, use); !reason.empty())
        return keep(draft, reason);
    const std::optional<TypeGain> best = fastest_type(draft, kAutomatic);
    if (!best) return keep(draft, "they cannot be compared with others here");
    const std::string type = ggml_type_name(best->type);
    const std::string promise =
        type + " promises " + factor_text(best->factor) + " times the speed";
    if (best->factor < kWorth) return keep(draft, promise);
    if (const std::string path = find_copy(draft, best->type); !path.empty()) {
        inform("The draft model's copy in " + type + " drafts: " + promise + "; " + path);
        return {.header = check_gguf(path), .later = nullptr};
    }
    if (copies().free_bytes() < size_in(draft, best->type).bytes + kLeftBytes)
        return keep(
            draft, promise + ", but the disk of " + copies().folder().string() + " is nearly full");
    const double seconds = seconds_to_convert(draft, best->type, use.n_threads);
    const bool now = seconds < kMostSeconds;
    warn("Converting the draft model " + draft.path + " to " + type + ", which promises " +
         factor_text(best->factor) + " times its speed on this machine. This is done once, " +
         (now ? "in a few seconds" : "in the background, for the next session") +
         "; draft_type=\"keep\" or --draft-type keep prevents it.");
    if (!now)
        return {.header = draft, .later = std::make_unique<BackgroundConversion>(draft, type)};
    return {.header = check_gguf(make_copy(draft, best->type, use.n_threads, progress)),
            .later = nullptr};
}

}  // namespace

BackgroundConversion::BackgroundConversion(const Header& draft, const std::string& type)
    : thread_([this, draft, type] {
          lower_priority();
          try {
              convert_draft(draft, type, 1, [this](float) { return !given_up_; });
          } catch (const Interrupted&) {
              // A later, longer session makes it.
          } catch (const std::exception& error) {
              warn(std::string("The draft model was not converted: ") + error.what());
          }
      }) {}

BackgroundConversion::~BackgroundConversion() {
    given_up_ = true;
    thread_.join();
}

DraftTypes choose_draft_types(const Header& draft, const DraftUse& use,
                              const ProgressFunction& progress) {
    if (use.type == "keep") return {.header = draft, .later = nullptr};
    if (use.type == "auto") {
        try {
            return choose_by_speed(draft, use, progress);
        } catch (const Interrupted&) {
            throw;
        } catch (const Error& error) {
            warn("The draft model keeps its types: " + std::string(error.what()));
        } catch (const std::system_error& error) {
            warn("The draft model keeps its types: " + error.code().message() + ".");
        }
        return {.header = draft, .later = nullptr};
    }
    if (use.on_gpu)
        throw InvalidArgument("draft_type is " + use.type +
                              ", but the draft model is on a GPU, where it has no effect; set "
                              "draft_n_gpu_layers to 0, or leave draft_type out.");
    return {.header = check_gguf(convert_draft(draft, use.type, use.n_threads, progress)),
            .later = nullptr};
}

std::string convert_draft(const Header& draft, const std::string& name, int n_threads,
                          const ProgressFunction& progress) {
    const ggml_type type = type_named(name);
    if (is_in(draft, type)) return draft.path;
    const std::string cannot = cannot_convert(draft, type);
    if (const std::string reason = fault(draft); !reason.empty())
        throw InvalidArgument(cannot + reason + "; leave draft_type out.");
    if (cache_folder().empty())
        throw InvalidArgument(cannot + "there is no folder for the copy; set SPECLLAMA_CACHE.");
    try {
        if (const std::string path = find_copy(draft, type); !path.empty()) return path;
        return make_copy(draft, type, n_threads, progress);
    } catch (const std::system_error& error) {
        throw ModelError(cannot + error.code().message() + " (" + copies().folder().string() +
                         ").");
    }
}

}  // namespace specllama
