#include "gguf/head_file.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "ggml.h"
#include "gguf/block_file.h"
#include "gguf/gguf_reader.h"
#include "gguf/layer_reader_file.h"

namespace specllama {

namespace {

constexpr const char* kUnlike = "llama.cpp does not support its layer of multi-token prediction";

class Eagle3File : private LayerReaderFile {
 public:
    using LayerReaderFile::LayerReaderFile;

    std::vector<int> check(const Header& target) const {
        check_states(target);
        if (number("eagle3.block_count") != 1) fail("an EAGLE-3 head has one layer");
        check_widths(target);
        check_vectors();
        check_tokens(target);
        const std::vector<int> read = layers(target);
        if (read.size() != 3) fail("it does not name three layers in eagle3.target_layers");
        return read;
    }

 private:
    // Checks the widths of the states that the head reads, and of the tensors that it shares with
    // the target.
    void check_widths(const Header& target) const {
        const std::int64_t width = *number("eagle3.embedding_length");
        const std::int64_t target_width = number("eagle3.target_hidden_size").value_or(0);
        if (target_width != target.width || (shares() && width != target.width))
            fail_width(shares() ? width : target_width, target);
        check_heads();
    }
};

// An assistant attends to the KV memory of the target's last two layers: the last one has full
// attention, the one before it a sliding window.
class AssistantFile : private GgufReader {
 public:
    explicit AssistantFile(const std::string& path) : GgufReader(path, "a draft") {}

    void check(const Header& target) const {
        if (const std::string fault = hidden_states_fault(); !fault.empty()) fail(fault);
        if (!target.traits.assistant)
            fail("it is a Gemma 4 assistant, but " + target.path + " is of the architecture " +
                 target.architecture);
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

    // A file's number for a layer: one per layer, or one for all; 0: not stated.
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
                 " should have full attention, and the one before it a sliding window");
        for (std::int64_t i = 0; i < number(key("block_count")).value_or(0); ++i) {
            const std::int64_t read = of_layer(*this, key(windows), i) != 0 ? last - 1 : last;
            if (of_layer(*this, key(heads), i) != of_layer(other, "gemma4." + heads, read))
                fail("it has another number of key-value heads than " + target.path);
        }
    }
};

class MtpFile : private GgufReader {
 public:
    explicit MtpFile(const std::string& path)
        : GgufReader(path),
          architecture_(text("general.architecture").value_or("")),
          n_(value("nextn_predict_layers")),
          first_(value("block_count") - n_) {}

    std::string fault() const {
        const Architecture::Mtp mtp = architecture(architecture_).mtp;
        if (n_ == 0) return "it has no layers of multi-token prediction";
        if (tensor(name(first_, "nextn.eh_proj.weight")) == nullptr)
            return "its layers of multi-token prediction are missing";
        if (std::string fault = hidden_states_fault(); !fault.empty()) return fault;
        if (mtp == Architecture::Mtp::none)
            return "llama.cpp has no multi-token prediction for " + architecture_ + " models";
        if (std::string fault = width_fault(*this); !fault.empty()) return fault;
        if (n_ != 1 && mtp == Architecture::Mtp::one)
            return "it has more than one layer of multi-token prediction";
        for (std::int64_t layer = first_; layer < first_ + n_; ++layer)
            for (const char* part : {"nextn.enorm.weight", "nextn.hnorm.weight"})
                if (const Tensor* norm = tensor(name(layer, part));
                    norm == nullptr || norm->type != GGML_TYPE_F32)
                    return "its tensor " + name(layer, part) + " is missing, or not of type f32";
        const bool any_lengths = is("mimo2") || is("step35") || is("deepseek4");
        if (!is_latent() && !any_lengths &&
            value("attention.key_length") != value("attention.value_length"))
            return "its attention's keys and values differ in length";
        return is_as_expected() ? "" : kUnlike;
    }

 private:
    bool is(const char* architecture) const { return architecture_ == architecture; }
    bool is_latent() const {
        return is("deepseek2") || is("deepseek32") || is("glm-dsa") || is("bailingmoe3");
    }
    std::int64_t value(const char* key) const {
        return number(architecture_ + "." + key).value_or(0);
    }
    static std::string name(std::int64_t layer, const std::string& part) {
        return "blk." + std::to_string(layer) + "." + part;
    }
    bool holds(std::int64_t layer, std::initializer_list<const char*> parts) const {
        return std::ranges::all_of(parts, [&](const std::string& part) {
            return tensor(name(layer, part + ".weight")) != nullptr;
        });
    }

    // Assumptions of llama.cpp's graphs.
    bool is_as_expected() const {
        if (is_latent() && value("attention.key_length_mla") == 0) return false;
        if (is("deepseek2") &&
            (value("attention.q_lora_rank") == 0 ||
             real(architecture_ + ".attention.temperature_scale").value_or(0) != 0))
            return false;
        if ((is_latent() || is("glm4moe")) &&
            (value("leading_dense_block_count") > first_ || value("expert_shared_count") < 1))
            return false;
        if ((is("glm4moe") || is("deepseek32") || is("glm-dsa")) &&
            has(architecture_ + ".rope.dimension_sections"))
            return false;
        if (is("deepseek4") &&
            (value("hash_layer_count") > first_ ||
             value("attention.key_length") == value("attention.indexer.key_length")))
            return false;
        for (std::int64_t layer = first_; layer < first_ + n_; ++layer)
            if (!has_network(layer)) return false;
        return true;
    }

    // For these architectures, llama.cpp does not require the tensors of the feed-forward network.
    bool has_network(std::int64_t layer) const {
        const bool is_dense = holds(layer, {"ffn_gate", "ffn_up", "ffn_down"});
        if (is("mimo2")) return is_dense && holds(layer, {"attn_qkv"});
        if (!is("hy_v3") && !is("step35")) return true;
        if (!holds(layer, {"ffn_gate_inp"})) return is_dense;
        return holds(layer,
                     {"ffn_down_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"}) &&
               (holds(layer, {"ffn_gate_exps", "ffn_up_exps"}) ||
                (is("hy_v3") && holds(layer, {"ffn_gate_up_exps"})));
    }

    std::string architecture_;
    std::int64_t n_;      // layers of multi-token prediction
    std::int64_t first_;  // the first of them
};

}  // namespace

std::vector<int> check_eagle3(const std::string& path, const Header& target) {
    return Eagle3File(path).check(target);
}

void check_assistant(const std::string& path, const Header& target) {
    AssistantFile(path).check(target);
}

void check_prediction(const Header& head, const Header& target) {
    const GgufReader file(head.path, "a draft");
    if (const std::string fault = mtp_fault(head.path); !fault.empty()) file.fail(fault);
    if (head.architecture != target.architecture)
        file.fail("it drafts for " + head.architecture + " models, but " + target.path + " is a " +
                  target.architecture);
    if (head.width != target.width)
        file.fail("it reads states of " + std::to_string(head.width) + " numbers, but those of " +
                  target.path + " have " + std::to_string(target.width));
    if (head.layers.size() != target.layers.size())
        file.fail("its target has " + std::to_string(head.layers.size()) + " layers, but " +
                  target.path + " has " + std::to_string(target.layers.size()));
    const GgufReader other(target.path);
    if (const std::string fault = width_fault(other); !fault.empty()) other.fail(fault);
}

void check_head(const Header& head, const Header& target) {
    if (head.is_prediction)
        check_prediction(head, target);
    else if (head.traits.kind == Architecture::Kind::assistant)
        check_assistant(head.path, target);
    else if (head.traits.kind == Architecture::Kind::block)
        check_block_drafter(head.path, target);
    else
        check_eagle3(head.path, target);
}

std::string mtp_fault(const std::string& path) { return MtpFile(path).fault(); }

}  // namespace specllama
