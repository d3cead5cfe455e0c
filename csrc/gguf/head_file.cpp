#include "gguf/head_file.h"

#include <cstdint>
#include <optional>

#include "ggml.h"
#include "gguf/gguf_reader.h"
#include "llama/hidden_states.h"

namespace specllama {

namespace {

constexpr const char* kNoStates =
    "this libllama does not hand out the hidden states that heads draft from";

constexpr const char* kUnlike = "its layer of multi-token prediction is not as llama.cpp wants it";

// llama.cpp hands out as many numbers of a state as embedding_length_out says, however many there
// are. What is wrong with that, as the rest of a sentence about the file; "": nothing.
std::string width_fault(const GgufReader& file) {
    const std::string prefix = file.text("general.architecture").value_or("") + ".embedding_length";
    const std::int64_t width = file.number(prefix).value_or(0);
    const std::int64_t out = file.number(prefix + "_out").value_or(0);
    if (out == 0 || out == width) return "";
    return "its embedding_length_out is " + std::to_string(out) + ", but its states have " +
           std::to_string(width) + " numbers";
}

class Eagle3File : private GgufReader {
 public:
    using GgufReader::GgufReader;

    std::vector<int> check(const Header& target) const {
        if (!hidden_states::available()) fail(kNoStates);
        if (!target.traits.layer_inputs)
            fail("llama.cpp does not tell what goes into the layers of " + target.path + " (" +
                 target.architecture + ")");
        if (const std::string fault = width_fault(*this); !fault.empty()) fail(fault);
        if (number("eagle3.block_count") != 1) fail("an EAGLE-3 head has one layer");
        check_widths(target);
        check_types();
        check_vocabulary(target);
        return layers(target);
    }

 private:
    bool holds(const char* name) const { return tensor(name) != nullptr; }

    std::vector<int> layers(const Header& target) const {
        const std::vector<std::int64_t> given = numbers("eagle3.target_layers");
        const int n_layers = static_cast<int>(target.layers.size());
        if (given.size() != 3) fail("it does not name three layers in eagle3.target_layers");
        for (const std::int64_t layer : given)
            if (layer < 0 || layer >= n_layers)
                fail("it reads what goes into layer " + std::to_string(layer) + ", but " +
                     target.path + " has " + std::to_string(n_layers) + " layers");
        return {given.begin(), given.end()};
    }

    // Checks the widths of the states that the head reads, and of what it shares with the target.
    void check_widths(const Header& target) const {
        const std::int64_t width = *number("eagle3.embedding_length");
        const std::int64_t target_width = number("eagle3.target_hidden_size").value_or(0);
        const bool shares = !holds("token_embd.weight") || !holds("output.weight");
        if (target_width != target.width || (shares && width != target.width))
            fail("its target's states have " + std::to_string(shares ? width : target_width) +
                 " numbers, those of " + target.path + " " + std::to_string(target.width));
        const auto key = number("eagle3.attention.key_length");
        const auto value = number("eagle3.attention.value_length");
        if (key.has_value() != value.has_value() || key != value)
            fail("its attention's keys and values differ in length");
    }

    void check_types() const {
        for (const Tensor& tensor : tensors()) {
            const auto& n = tensor.sizes;
            const ggml_type wanted = tensor.name == "d2t" ? GGML_TYPE_I64 : GGML_TYPE_F32;
            if (n[1] * n[2] * n[3] == 1) check_type(tensor, {{wanted}});
        }
    }

    // Checks the head's tokens, which may be fewer than the target's; d2t then lists them.
    void check_vocabulary(const Header& target) const {
        const int n_vocab = target.n_vocab;
        if (const Tensor* embeddings = tensor("token_embd.weight");
            embeddings != nullptr && embeddings->sizes[1] < n_vocab)
            fail("it has embeddings for fewer tokens than there are");
        const Tensor* d2t = tensor("d2t");
        if (d2t == nullptr) return;
        const auto n = static_cast<std::size_t>(d2t->sizes[0]);
        if (!holds("output.weight") && n != static_cast<std::size_t>(n_vocab))
            fail("it has a vocabulary of its own, but no output.weight for it");
        for (const std::int64_t token : integers(*d2t))
            if (token < 0 || token >= n_vocab)
                fail("its d2t names token " + std::to_string(token) + "; there are " +
                     std::to_string(n_vocab));
    }
};

// An assistant attends to what the target's last two layers keep: the last one sees the whole text,
// the one before has a window.
class AssistantFile : private GgufReader {
 public:
    using GgufReader::GgufReader;

    void check(const Header& target) const {
        if (!hidden_states::available()) fail(kNoStates);
        if (!target.traits.assistant)
            fail("it is an assistant of a Gemma 4, and " + target.path + " is of another kind (" +
                 target.architecture + ")");
        if (number(key("embedding_length_out")) != target.width)
            fail("it reads states of another width than those of " + target.path);
        const GgufReader other(target.path);
        if (const std::string fault = width_fault(other); !fault.empty()) other.fail(fault);
        check_layers(target, other);
        for (const std::string length : {"key_length", "value_length"})
            for (const char* layers : {"", "_swa"})
                if (const std::string name = "attention." + length + layers;
                    number(key(name)) != other.number("gemma4." + name))
                    fail("its attention heads are of another length than those of " + target.path);
    }

 private:
    static std::string key(const std::string& name) { return "gemma4-assistant." + name; }

    // What a file states of a layer: a number for each, or one for all; 0: it states nothing.
    static std::int64_t of_layer(const GgufReader& file, const std::string& name,
                                 std::int64_t layer) {
        if (const auto one = file.number(name)) return *one;
        const std::vector<std::int64_t> each = file.numbers(name);
        return layer >= 0 && layer < std::ssize(each) ? each[layer] : 0;
    }

    void check_layers(const Header& target, const GgufReader& other) const {
        const std::string windows = "attention.sliding_window_pattern";
        const std::string heads = "attention.head_count_kv";
        const std::int64_t last = static_cast<int>(target.layers.size()) - 1;
        if (last < 1 || of_layer(other, "gemma4." + windows, last) != 0 ||
            of_layer(other, "gemma4." + windows, last - 1) == 0)
            fail("the last layer of " + target.path +
                 " should see the whole text and the one before have a window");
        for (std::int64_t i = 0; i < number(key("block_count")).value_or(0); ++i) {
            const std::int64_t read = of_layer(*this, key(windows), i) != 0 ? last - 1 : last;
            if (of_layer(*this, key(heads), i) != of_layer(other, "gemma4." + heads, read))
                fail("it has another number of key-value heads than " + target.path);
        }
    }
};

class MtpFile : private GgufReader {
 public:
    using GgufReader::GgufReader;

    std::string fault() const {
        const std::string architecture = text("general.architecture").value_or("");
        const std::int64_t n = number(architecture + ".nextn_predict_layers").value_or(0);
        if (n == 0) return "it brings no layers of multi-token prediction along";
        const std::int64_t layer = number(architecture + ".block_count").value_or(0) - n;
        const std::string prefix = "blk." + std::to_string(layer) + ".nextn.";
        if (tensor(prefix + "eh_proj.weight") == nullptr)
            return "its layers of multi-token prediction were left out";
        if (!hidden_states::available()) return kNoStates;
        if (!specllama::architecture(architecture).mtp)
            return "llama.cpp's multi-token prediction fails with " + architecture +
                   " models, or has not been tried";
        if (std::string fault = width_fault(*this); !fault.empty()) return fault;
        if (n != 1) return "it has more than one layer of multi-token prediction";
        for (const char* norm : {"enorm.weight", "hnorm.weight"})
            if (const Tensor* found = tensor(prefix + norm);
                found == nullptr || found->type != GGML_TYPE_F32)
                return "its tensor " + prefix + norm + " is missing, or not of type f32";
        const auto value = [&](const char* key) {
            return number(architecture + "." + key).value_or(0);
        };
        const bool is_latent = architecture == "deepseek2";
        if (!is_latent && value("attention.key_length") != value("attention.value_length"))
            return "its attention's keys and values differ in length";
        // What the graphs of these take for granted.
        if (is_latent &&
            (value("attention.key_length_mla") == 0 || value("attention.q_lora_rank") == 0 ||
             real(architecture + ".attention.temperature_scale").value_or(0) != 0))
            return kUnlike;
        if ((is_latent || architecture == "glm4moe") &&
            (value("leading_dense_block_count") > layer || value("expert_shared_count") < 1))
            return kUnlike;
        if (architecture == "glm4moe" && has("glm4moe.rope.dimension_sections")) return kUnlike;
        return "";
    }
};

}  // namespace

bool gives_layer_inputs(const Header& header) {
    return hidden_states::available() && header.traits.layer_inputs;
}

std::vector<int> check_eagle3(const std::string& path, const Header& target) {
    return Eagle3File(path).check(target);
}

void check_assistant(const std::string& path, const Header& target) {
    AssistantFile(path).check(target);
}

std::string mtp_fault(const std::string& path) { return MtpFile(path).fault(); }

}  // namespace specllama
