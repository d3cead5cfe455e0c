#include "gguf/architecture/weights.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace specllama {

int layer_of(const std::string& tensor) {
    constexpr std::string_view kLayer = "blk.";
    int layer = -1;
    if (tensor.starts_with(kLayer))
        std::from_chars(tensor.data() + kLayer.size(), tensor.data() + tensor.size(), layer);
    return layer;
}

bool is_of_experts(const std::string& tensor) { return tensor.find("exps.") != std::string::npos; }

void add_weights(const std::string& tensor, std::uint64_t bytes, Weights& weights) {
    weights.total += bytes;
    if (tensor.starts_with("output")) weights.output += bytes;
    const int layer = layer_of(tensor);
    if (layer < 0 || layer >= std::ssize(weights.layers)) return;
    Weights::Layer& its = weights.layers[layer];
    its.bytes += bytes;
    if (is_of_experts(tensor)) its.of_experts += bytes;
    its.largest = std::max(its.largest, bytes);
}

Weights count_weights(const GgufReader& file) {
    Weights weights;
    weights.layers.resize(*file.number(*file.text("general.architecture") + ".block_count"));
    weights.is_tied = file.tensor("output.weight") == nullptr;
    for (const GgufReader::Tensor& tensor : file.tensors())
        add_weights(tensor.name, tensor.bytes, weights);
    if (const auto* embeddings = file.tensor("token_embd.weight");
        embeddings != nullptr && weights.is_tied)
        weights.output += embeddings->bytes;
    return weights;
}

}  // namespace specllama
