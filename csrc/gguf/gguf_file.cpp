#include "gguf/gguf_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ggml-cpu.h"
#include "ggml.h"
#include "gguf/architecture/attention_layers.h"
#include "gguf/architecture/needed_tensors.h"
#include "gguf/architecture/recurrent_layers.h"
#include "gguf/gguf_reader.h"
#include "gguf/tokenizer_file.h"
#include "llama/backend.h"

namespace specllama {

namespace {

// The types of matrices that ggml can multiply with. It can also look up rows of all of them.
std::vector<ggml_type> multiplied_types() {
    std::vector<ggml_type> types;
    for (int i = 0; i < GGML_TYPE_COUNT; ++i)
        if (const auto type = static_cast<ggml_type>(i);
            ggml_get_type_traits_cpu(type)->vec_dot != nullptr)
            types.push_back(type);
    return types;
}

class File : private GgufReader {
 public:
    using GgufReader::GgufReader;

    void check() const {
        check_split();
        check_tensors();
        check_architecture();
        RecurrentLayers(*this).check();
        check_needed_tensors(*this);
        check_tokenizer(*this);
    }

    Header header() const {
        Header header;
        header.path = path();
        header.files = files();
        header.architecture = *text("general.architecture");
        header.traits = traits();
        header.is_prediction = is_prediction();
        header.weights = count_weights(*this);
        const RecurrentLayers recurrent(*this);
        for (const Tensor& tensor : tensors()) {
            add_matrix(tensor, recurrent, header.matrices);
            // Phi-3 and similar models have this tensor but do not name their kind of scaling.
            header.long_rope |= tensor.name.ends_with("rope_factors_long.weight");
        }
        const std::string prefix = header.architecture + ".";
        header.long_rope |= text(prefix + "rope.scaling.type") == "longrope";
        const auto value = [&](const char* name) {
            return static_cast<double>(number(prefix + name).value_or(0));
        };
        const AttentionLayers attention(*this, recurrent);
        header.has_sliding_window = attention.window() > 0;
        header.n_window = attention.window();
        header.one_kv_type = value("attention.key_length_mla") > 0 || header.traits.one_kv_type;
        for (const auto& [whole, windows] : attention.kept()) {
            const auto layer = static_cast<int>(header.layers.size());
            header.layers.push_back({whole, windows, recurrent.state_numbers(layer)});
        }
        const double width = value("embedding_length");
        const double n_heads = value("attention.head_count");
        header.width = static_cast<int>(width);
        header.target_width = static_cast<int>(value(target_width_key()));
        header.shares_output = (is_eagle3() || is_block()) && tensor("output.weight") == nullptr;
        if (value("expert_count") > 0)
            header.expert_share = value("expert_used_count") / value("expert_count");
        header.n_ctx_train = static_cast<int>(value("context_length"));
        header.n_vocab =
            static_cast<int>(array("tokenizer.ggml.tokens", {GGUF_TYPE_STRING}).value());
        header.compute_numbers_per_token = 8 * width + 3 * value("feed_forward_length");
        header.rotation = rotation(prefix);
        if (n_heads == 0) return header;  // no attention, or a number per layer
        const double head = number(prefix + "attention.key_length") ? value("attention.key_length")
                                                                    : width / n_heads;
        header.n_heads = static_cast<int>(n_heads);
        header.head_size = static_cast<int>(head);
        return header;
    }

 private:
    const Architecture& traits() const {
        return architecture(text("general.architecture").value_or(""));
    }
    bool is_eagle3() const { return traits().kind == Architecture::Kind::eagle3; }
    bool is_block() const { return traits().kind == Architecture::Kind::block; }
    // The files of assistants declare all layers as layers of multi-token prediction.
    bool is_assistant() const { return traits().kind == Architecture::Kind::assistant; }

    const char* target_width_key() const {
        if (is_block() || is_prediction()) return "embedding_length";
        return is_assistant() ? "embedding_length_out" : "target_hidden_size";
    }

    // Adds a tensor if it is multiplied with activations, unless it is a vector or a lookup table.
    void add_matrix(const Tensor& one, const RecurrentLayers& recurrent,
                    std::vector<Matrix>& matrices) const {
        const auto& [name, type, n, bytes] = one;
        // A head without an output uses that of its target.
        const bool is_tied = tensor("output.weight") == nullptr && !is_eagle3();
        if (n[1] == 1 || name.ends_with(".nextn.embed_tokens.weight") ||
            name == "position_embd.weight" || name == "per_layer_token_embd.weight" ||
            (name == "token_embd.weight" && !is_tied))
            return;
        const std::string layer = name.substr(0, name.find('.', name.find('.') + 1));
        matrices.push_back(
            {.name = name,
             .type = type,
             .n_in = n[0],
             .n_out = n[1],
             .n_slices = n[2] * n[3],
             .of_experts = is_of_experts(name),
             .recurrent = recurrent.contains(layer) && name.find(".ffn_") == std::string::npos});
    }

    Rotation rotation(const std::string& prefix) const {
        Rotation rotation;
        rotation.head_size = head_size(prefix).value_or(0);
        for (const char* name : {"rope.dimension_count", "rope.dimension_count_swa"})
            if (const auto n = number(prefix + name))
                rotation.n_turned = std::min(*n, rotation.n_turned.value_or(*n));
        const std::string key = prefix + "rope.dimension_sections";
        // A single number applies to all four.
        if (const auto n = number(key))
            rotation.sections.assign(4, *n);
        else
            rotation.sections = numbers(key);
        return rotation;
    }

    // A later part of a split model has neither architecture nor tokenizer.
    void check_split() const {
        if (const auto part = number("split.no"); part && *part != 0)
            fail("it is part " + std::to_string(*part + 1) +
                 " of a split model; give the path of the first part");
    }

    void check_tensors() const {
        if (tensors().empty()) fail("it has a vocabulary but no weights");
        for (const Tensor& tensor : tensors()) {
            check_type(tensor);
            if (std::ranges::any_of(tensor.sizes, [](std::int64_t size) { return size < 1; }))
                fail("its tensor " + tensor.name + " is empty");
        }
    }

    // Whether a tensor is used element by element, not as a matrix: vectors, and some tensors of
    // recurrent layers. llama.cpp supports, and writes, only float32 for these.
    static bool is_plain(const Tensor& tensor) {
        const std::string& name = tensor.name;
        const auto contains = [&](const char* part) {
            return name.find(part) != std::string::npos;
        };
        if (name.ends_with("_norm.weight") || name.ends_with(".bias") || name.ends_with(".ssm_a") ||
            name.ends_with(".ssm_d") || contains(".ssm_conv1d") || contains(".shortconv.conv.") ||
            name.ends_with("_conv_base"))
            return true;
        // A matrix with one output has the shape of a vector: the gate of a shared expert, and the
        // confidence head of a block drafter.
        return tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3] == 1 && !contains("_gate_inp") &&
               name != "conf_proj.weight";
    }

    // llama.cpp does not check the types of tensors, but lacks code for some of them.
    void check_type(const Tensor& tensor) const {
        static const std::vector<ggml_type> multiplied = multiplied_types();
        constexpr std::array kPlain = {GGML_TYPE_F32};
        // d2t lists the tokens of a head's own vocabulary.
        if (tensor.name == "d2t" && tensor.type == GGML_TYPE_I64 && (is_eagle3() || is_block()))
            return;
        if (is_plain(tensor))
            GgufReader::check_type(tensor, kPlain);
        else
            GgufReader::check_type(tensor, multiplied);
    }

    void check_architecture() const {
        if (text("general.type") == "adapter")
            fail("it is an adapter; give it as lora, in addition to the model");
        const auto architecture = text("general.architecture");
        if (!architecture) fail("it does not name its architecture");
        if (traits().kind == Architecture::Kind::encoder)
            fail("its architecture, " + *architecture + ", does not generate text token by token");
        const std::string prefix = *architecture + ".";
        if (const auto causal = boolean(prefix + "attention.causal");
            causal && !*causal && !is_block())
            fail("it is an embedding model (its attention is not causal)");
        for (const char* name : {"block_count", "embedding_length", "context_length"})
            if (!number(prefix + name)) fail("its " + prefix + name + " is missing");
        constexpr std::int64_t kAny = INT32_MAX;
        check_range(prefix + "block_count", 1, 512);  // llama.cpp's own limits
        check_range(prefix + "embedding_length", 1, kAny);
        check_range(prefix + "context_length", 1, kAny);
        check_range(prefix + "feed_forward_length", 0, kAny);
        check_range(prefix + "attention.head_count", 0, 65536);
        check_range(prefix + "attention.head_count_kv", 0, 65536);
        check_range(prefix + "full_attention_interval", 1, kAny);
        const std::int64_t n_layers = *number(prefix + "block_count");
        check_range(prefix + "nextn_predict_layers", is_assistant() ? n_layers : 0,
                    is_assistant() ? n_layers : n_layers - 1);
        const std::int64_t heads = number(prefix + "attention.head_count").value_or(0);
        const std::int64_t heads_kv = number(prefix + "attention.head_count_kv").value_or(heads);
        if (heads > 0 && heads_kv > 0 && heads % heads_kv != 0)
            fail("its " + std::to_string(heads) + " attention heads are not a multiple of its " +
                 std::to_string(heads_kv) + " key-value heads");
        check_range(prefix + "attention.key_length", 1, kAny);
        check_range(prefix + "attention.sliding_window", 0, kAny);
        check_range(prefix + "target_hidden_size", 0, kAny);
        if (*architecture == "deepseek4")
            check_range(prefix + "attention.output_group_count", 1, kAny);
        // Recurrent models may state 0 heads.
        if (!head_size(prefix) && !RecurrentLayers(*this).any())
            fail("its " + prefix + "attention.head_count is missing or 0");
        check_head_size(prefix, heads);
        check_experts(prefix);
        array(prefix + "target_layers", {GGUF_TYPE_INT32, GGUF_TYPE_UINT32});
        for (const char* name :
             {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
            if (const auto epsilon = real(prefix + name); epsilon && !(*epsilon >= 0))
                fail("its " + prefix + name + " is negative or not a number");
        const auto scaling = text(prefix + "rope.scaling.type").value_or("none");
        if (scaling != "none" && scaling != "linear" && scaling != "yarn" && scaling != "longrope")
            fail("its " + prefix + "rope.scaling.type is \"" + scaling + "\"");
    }

    // Whether llama.cpp treats the file as one with layers of multi-token prediction only, of which
    // it loads the existing tensors: the first layer lacks this norm. Some architectures have no
    // such norm in any layer.
    bool is_prediction() const {
        const std::string norm = "attn_norm.weight";
        if (number(*text("general.architecture") + ".nextn_predict_layers").value_or(0) == 0 ||
            tensor("blk.0." + norm) != nullptr)
            return false;
        return std::ranges::any_of(
            tensors(), [&](const Tensor& tensor) { return tensor.name.ends_with("." + norm); });
    }

    // Checks a number, or each number of a list with one per layer.
    void check_range(const std::string& key, std::int64_t low, std::int64_t high) const {
        std::vector<std::int64_t> values = numbers(key);
        if (const auto value = number(key)) values.push_back(*value);
        for (const std::int64_t value : values)
            if (value < low || value > high) fail("its " + key + " is " + std::to_string(value));
    }

    // Rotary positions rotate pairs of numbers, so their count must be even.
    void check_head_size(const std::string& prefix, std::int64_t heads) const {
        const std::int64_t width = *number(prefix + "embedding_length");
        if (heads > 0 && !number(prefix + "attention.key_length") && width % heads != 0)
            fail("its width of " + std::to_string(width) + " is not a multiple of its " +
                 std::to_string(heads) + " attention heads");
        const auto usual = head_size(prefix);
        if (!usual) return;
        // Layers with sliding windows may have other heads. The count of rotated numbers is the
        // same unless the file states another.
        std::optional<std::int64_t> turned;
        for (const char* layers : {"", "_swa"}) {
            const std::int64_t head =
                number(prefix + "attention.key_length" + layers).value_or(*usual);
            turned =
                number(prefix + "rope.dimension_count" + layers).value_or(turned.value_or(head));
            if (head < 1 || *turned < 0 || *turned > head || *turned % 2 != 0)
                fail("its attention heads have " + std::to_string(head) + " numbers, of which " +
                     std::to_string(*turned) + " are rotated by position");
        }
    }

    // The numbers of an attention head; none: no attention. As in llama.cpp, the first element
    // counts in a list of heads per layer.
    std::optional<std::int64_t> head_size(const std::string& prefix) const {
        const std::string key = prefix + "attention.head_count";
        std::int64_t heads = number(key).value_or(0);
        if (has(key) && !number(key))
            if (const auto each = numbers(key); !each.empty()) heads = each.front();
        if (heads <= 0) return {};
        return number(prefix + "attention.key_length")
            .value_or(*number(prefix + "embedding_length") / heads);
    }

    void check_experts(const std::string& prefix) const {
        const std::int64_t n = number(prefix + "expert_count").value_or(0);
        const std::int64_t used = number(prefix + "expert_used_count").value_or(0);
        const std::int64_t groups = number(prefix + "expert_group_count").value_or(0);
        if (n < 0 || n > 512 || used < 0 || used > n || (n > 0 && used == 0) ||
            (groups > 1 && (n == 0 || n % groups != 0)))
            fail("it has " + std::to_string(n) + " experts in " + std::to_string(groups) +
                 " groups and uses " + std::to_string(used) + " of them");
    }
};

}  // namespace

std::string Header::head_name() const {
    if (is_prediction) return "a file of multi-token prediction layers";
    switch (traits.kind) {
        case Architecture::Kind::eagle3:
            return "an EAGLE-3 head";
        case Architecture::Kind::block:
            return "a block drafter";
        default:
            return "an assistant";
    }
}

std::uint64_t Matrix::n_bytes() const {
    return ggml_row_size(type, n_in) * static_cast<std::uint64_t>(n_out * n_slices);
}

Header check_gguf(const std::string& path) {
    ensure_backend();
    const File file(path);
    file.check();
    return file.header();
}

std::string rotation_fault(const Rotation& rotation, llama_rope_type type) {
    if (type == LLAMA_ROPE_TYPE_NONE) return "";
    // llama.cpp advances by the count of rotated numbers, so with 0 it loops forever.
    if (rotation.n_turned == 0) return "its rope.dimension_count is 0";
    const std::vector<std::int64_t>& sections = rotation.sections;
    if ((type & GGML_ROPE_TYPE_MROPE) == 0 || sections.size() != 4) return "";
    // llama.cpp takes the number of a pair modulo the sum of the sections. It asserts that the sum
    // fits the head, and that the positions of a text, the first three, rotate at least one pair.
    const auto sum_of = [&](std::ptrdiff_t n) {
        return std::accumulate(sections.begin(), sections.begin() + n, std::int64_t{0});
    };
    if (std::ranges::min(sections) < 0 || sum_of(3) == 0 || sum_of(4) > rotation.head_size)
        return "its rope.dimension_sections do not divide its attention heads of " +
               std::to_string(rotation.head_size) + " numbers";
    return "";
}

}  // namespace specllama
