#include "gguf/projector_file.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "ggml-cpu.h"
#include "gguf/gguf_reader.h"
#include "llama/backend.h"

namespace specllama {

namespace {

// Most patches of an image of the size in the file: four times those of the largest models.
constexpr std::int64_t kMostPatches = 1 << 16;
constexpr std::int64_t kMostWidth = 1 << 16;
constexpr std::int64_t kMostSide = 8192;  // llama.cpp's own limit

// In the first two, an image depends on the text before it, so it cannot be reused elsewhere. The
// last two generate sound.
constexpr std::array<std::string_view, 4> kUnsupported = {"hunyuanvl", "deepseek4v", "qwen3tts_gen",
                                                          "pockettts_gen"};

// These look up the position of each patch in a table.
constexpr std::array<std::string_view, 8> kTables = {"gemma3",   "mlp",      "ldp",       "ldpv2",
                                                     "idefics3", "internvl", "janus_pro", "cogvlm"};

// These read rows of that table, which may have any float type. The others add the table itself,
// which requires F32: the kernel asserts that while it computes.
constexpr std::array<std::string_view, 7> kRowsTaken = {
    "mlp", "ldp", "ldpv2", "resampler", "deepseekocr", "gemma4v", "gemma4uv"};

class ProjectorFile : private GgufReader {
 public:
    explicit ProjectorFile(const std::string& path) : GgufReader(path, "a projector") {}

    Projector check() const {
        const std::string architecture = text("general.architecture").value_or("");
        if (architecture != "clip")
            fail((architecture.empty() ? "it does not name its architecture"
                                       : "it is a model (" + architecture + ")") +
                 "; give the file whose name begins with mmproj");
        Projector projector;
        projector.sees = boolean("clip.has_vision_encoder").value_or(false);
        projector.hears = boolean("clip.has_audio_encoder").value_or(false);
        if (!projector.sees && !projector.hears) fail("it encodes neither images nor sounds");
        if (projector.hears) {
            check_encoder(projector, "audio");
            check_layers(projector.type, "audio", "a");
            if (is_whisper(projector.type)) need("a.position_embd.weight");
            if (const Tensor* table = tensor("a.position_embd.weight"))
                check_type(*table, {{GGML_TYPE_F32}});
        }
        if (projector.sees) {
            check_encoder(projector, "vision");
            check_layers(projector.type, "vision", "v");
            check_images(projector.type);
        }
        for (const Tensor& tensor : tensors()) {
            check_tensor(tensor);
            projector.n_bytes += tensor.bytes;
        }
        return projector;
    }

 private:
    void check_range(const std::string& key, std::int64_t low, std::int64_t high,
                     bool required) const {
        const auto value = number(key);
        if (!value && (required || has(key))) fail("its " + key + " is missing or not an integer");
        if (value && (*value < low || *value > high))
            fail("its " + key + " is " + std::to_string(*value));
    }

    void check_encoder(Projector& projector, const std::string& kind) const {
        const std::string prefix = "clip." + kind + ".";
        // One key for both encoders, or one for each.
        projector.type = text("clip.projector_type").value_or("");
        if (projector.type.empty()) projector.type = text(prefix + "projector_type").value_or("");
        if (projector.type.empty()) fail("its " + prefix + "projector_type is missing");
        if (std::ranges::find(kUnsupported, projector.type) != kUnsupported.end())
            fail("projectors of type " + projector.type + " are not supported");
        check_range(prefix + "embedding_length", 1, kMostWidth, true);
        check_range(prefix + "feed_forward_length", 0, 1 << 20, true);
        check_range(prefix + "block_count", 0, 512, true);
        check_range(prefix + "projection_dim", 0, kMostWidth * 16, true);
        check_range(prefix + "attention.head_count", 0, 4096, true);
        check_range(prefix + "attention.head_count_kv", 1, 4096, false);
        check_range(prefix + "attention.head_dim", 1, 4096, false);
        const std::int64_t width = *number(prefix + "embedding_length");
        const std::int64_t heads = *number(prefix + "attention.head_count");
        if (heads > 0 && !number(prefix + "attention.head_dim") && width % heads != 0)
            fail("its width of " + std::to_string(width) + " is not a multiple of its " +
                 std::to_string(heads) + " attention heads");
        const auto epsilon = real(prefix + "attention.layer_norm_epsilon");
        if (!epsilon || !(*epsilon >= 0))
            fail("its " + prefix + "attention.layer_norm_epsilon is missing or negative");
        projector.width = static_cast<int>(*number(prefix + "projection_dim"));
    }

    void need(const std::string& name) const {
        if (tensor(name) == nullptr) fail("its tensor " + name + " is missing");
    }

    // llama.cpp treats most tensors as optional, but computes with missing ones. So each layer must
    // have the tensors of the first one, and those that all graphs use.
    void check_layers(const std::string& type, const std::string& kind,
                      const std::string& prefix) const {
        const std::int64_t n = *number("clip." + kind + ".block_count");
        const auto name = [&](std::int64_t layer, const std::string& part) {
            return prefix + ".blk." + std::to_string(layer) + "." + part;
        };
        const bool biased = is_qwen2(type);
        const std::string first = prefix + ".blk.0.";
        for (std::int64_t layer = 0; tensor(name(0, "attn_out.weight")) && layer < n; ++layer) {
            if (!tensor(name(layer, "attn_qkv.weight")))
                for (const char* part : {"attn_q", "attn_k", "attn_v"}) {
                    need(name(layer, part + std::string(".weight")));
                    if (biased) need(name(layer, part + std::string(".bias")));
                }
            for (const Tensor& tensor : tensors())
                if (tensor.name.starts_with(first) && !varies(tensor.name))
                    need(name(layer, tensor.name.substr(first.size())));
        }
    }

    // Whether sounds are encoded as in Whisper.
    static bool is_whisper(const std::string& type) {
        constexpr std::array<std::string_view, 6> kAll = {"ultravox", "voxtral",  "qwen2a",
                                                          "glma",     "meralion", "musicflamingo"};
        return std::ranges::find(kAll, type) != kAll.end();
    }

    static bool is_qwen2(const std::string& type) {
        return type == "qwen2vl_merger" || type == "qwen2.5vl_merger" || type == "qwen2.5o";
    }

    // Whether some layers have such a tensor and others do not.
    static bool varies(const std::string& name) {
        return name.find(".attn_sinks") != std::string::npos ||
               name.find(".ffn_") != std::string::npos;
    }

    void check_images(const std::string& type) const {
        const std::string prefix = "clip.vision.";
        check_range(prefix + "image_size", 0, kMostSide, true);
        check_range(prefix + "patch_size", 1, kMostSide, true);
        for (const char* one : {"spatial_merge_size", "projector.scale_factor",
                                "projector.query_side", "projector.window_side"})
            check_range(prefix + one, 1, 64, false);
        // llama.cpp expects that some layer has a window.
        check_range(prefix + "n_wa_pattern", 0, 64, false);
        const std::int64_t pattern = number(prefix + "n_wa_pattern").value_or(0);
        if (pattern == 1 || (pattern > 1 && *number(prefix + "block_count") == 0))
            fail("its n_wa_pattern is " + std::to_string(pattern) +
                 ", with which no layer has a window");
        check_range(prefix + "window_size", 0, 4096, false);
        for (const char* one : {"image_min_pixels", "image_max_pixels"})
            check_range(prefix + one, 0, kMostSide * kMostSide, false);
        for (const char* one : {"preproc_min_tiles", "preproc_max_tiles"})
            check_range(prefix + one, 0, 64, false);
        check_range(prefix + "preproc_image_size", 1, kMostSide, false);
        for (const char* one : {"image_mean", "image_std"})
            if (array(prefix + one, {GGUF_TYPE_FLOAT32}).value_or(0) < 3)
                fail("its " + prefix + one + " has fewer than three numbers");
        const std::int64_t side = *number(prefix + "image_size") / *number(prefix + "patch_size");
        if (side == 0 && *number(prefix + "image_size") > 0)
            fail("its patches are larger than its images");
        if (side * side > kMostPatches)
            fail("its images have " + std::to_string(side * side) + " patches");
        if (!type.starts_with("gemma3n") && type != "gemma4uv") need("v.patch_embd.weight");
        if (is_qwen2(type)) need("v.patch_embd.weight.1");
        const Tensor* table = tensor("v.position_embd.weight");
        if (table != nullptr && std::ranges::find(kTables, type) != kTables.end() &&
            table->sizes[1] < side * side + (tensor("v.class_embd") != nullptr ? 1 : 0))
            fail("its tensor v.position_embd.weight has fewer positions than an image");
        if (table != nullptr && std::ranges::find(kRowsTaken, type) == kRowsTaken.end())
            check_type(*table, {{GGML_TYPE_F32}});
    }

    // Kernels for vectors and convolutions support only floats, and assert that while they compute.
    void check_tensor(const Tensor& tensor) const {
        static const std::vector<ggml_type> kMatrices = [] {
            std::vector<ggml_type> types;
            for (int i = 0; i < GGML_TYPE_COUNT; ++i)
                if (const auto type = static_cast<ggml_type>(i);
                    ggml_get_type_traits_cpu(type)->vec_dot != nullptr)
                    types.push_back(type);
            return types;
        }();
        const auto& n = tensor.sizes;
        if (n[1] * n[2] * n[3] == 1)
            check_type(tensor, {{GGML_TYPE_F32}});
        else if (n[2] * n[3] > 1 || tensor.name.find("_embd.") != std::string::npos)
            check_type(tensor, {{GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16}});
        else
            check_type(tensor, kMatrices);
    }
};

}  // namespace

Projector check_projector(const std::string& path) {
    ensure_backend();
    return ProjectorFile(path).check();
}

}  // namespace specllama
