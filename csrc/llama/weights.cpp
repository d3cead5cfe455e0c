#include "llama/weights.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace specllama {

namespace {

// The layer that a tensor is in; -1: none.
int layer_of(std::string_view tensor) {
    constexpr std::string_view kLayer = "blk.";
    int layer = -1;
    if (tensor.starts_with(kLayer))
        std::from_chars(tensor.data() + kLayer.size(), tensor.data() + tensor.size(), layer);
    return layer;
}

}  // namespace

bool is_of_experts(const std::string& tensor) { return tensor.find("exps.") != std::string::npos; }

Weights count_weights(const GgufReader& file) {
    Weights weights;
    weights.layers.resize(*file.number(*file.text("general.architecture") + ".block_count"));
    weights.is_tied = file.tensor("output.weight") == nullptr;
    for (const auto& [name, type, sizes, bytes] : file.tensors()) {
        weights.total += bytes;
        if (name.starts_with("output")) weights.output += bytes;
        const int layer = layer_of(name);
        if (layer < 0 || layer >= std::ssize(weights.layers)) continue;
        Weights::Layer& its = weights.layers[layer];
        its.bytes += bytes;
        if (is_of_experts(name)) its.of_experts += bytes;
        its.largest = std::max(its.largest, bytes);
    }
    if (const auto* embeddings = file.tensor("token_embd.weight");
        embeddings != nullptr && weights.is_tied)
        weights.output += embeddings->bytes;
    return weights;
}

}  // namespace specllama
