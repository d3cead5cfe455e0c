#include "gguf/architecture/needed_tensors.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace specllama {

namespace {

class Layers {
 public:
    explicit Layers(const GgufReader& file)
        : file_(file), architecture_(*file.text("general.architecture")) {}

    void check() const {
        const std::int64_t n = value("block_count") - value("nextn_predict_layers");
        const bool has_indexers = architecture_ == "glm-dsa";
        const bool may_have_experts =
            architecture_ == "hy_v3" || architecture_ == "step35" || architecture_ == "mimo2";
        for (std::int64_t layer = 0; layer < n; ++layer) {
            if (!holds(layer, "attn_norm.weight"))
                continue;  // llama.cpp reports this one as missing
            if (has_indexers && has_indexer(layer))
                need(layer,
                     {"indexer.proj.weight", "indexer.attn_k.weight", "indexer.attn_q_b.weight",
                      "indexer.k_norm.weight", "indexer.k_norm.bias"});
            if (!may_have_experts || !holds(layer, "ffn_gate_inp.weight")) continue;
            need(layer, {"ffn_down_exps.weight"});
            if (!holds(layer, "ffn_gate_up_exps.weight"))
                need(layer, {"ffn_gate_exps.weight", "ffn_up_exps.weight"});
        }
    }

 private:
    std::int64_t value(const char* key) const {
        return file_.number(architecture_ + "." + key).value_or(0);
    }
    static std::string name(std::int64_t layer, const std::string& part) {
        return "blk." + std::to_string(layer) + "." + part;
    }
    bool holds(std::int64_t layer, const std::string& part) const {
        return file_.tensor(name(layer, part)) != nullptr;
    }
    void need(std::int64_t layer, std::initializer_list<const char*> parts) const {
        for (const char* part : parts)
            if (!holds(layer, part)) file_.fail("its tensor " + name(layer, part) + " is missing");
    }

    // Whether a layer has its own indexer, which chooses the tokens to attend to, instead of that
    // of the previous layer. llama.cpp's default: with the context of GLM 5.2, every fourth layer.
    bool has_indexer(std::int64_t layer) const {
        const std::string key = architecture_ + ".attention.indexer.types";
        if (const auto one = file_.number(key)) return *one != 0;
        if (const std::vector<std::int64_t> each = file_.numbers(key); !each.empty())
            return layer < std::ssize(each) && each[layer] != 0;
        return value("context_length") < 1048576 || layer < 2 || (layer - 2) % 4 == 0;
    }

    const GgufReader& file_;
    std::string architecture_;
};

}  // namespace

void check_needed_tensors(const GgufReader& file) { Layers(file).check(); }

}  // namespace specllama
