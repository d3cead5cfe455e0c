#include "system/layer_split.h"

#include <algorithm>

namespace specllama {

namespace {

int n_layers(const ModelBytes& need) { return static_cast<int>(need.weights.layers.size()); }

// Layers on devices. As in llama.cpp, the output counts as one more layer at the end.
struct Offloaded {
    int first;
    int n;
};
Offloaded offloaded(const ModelBytes& need, const LayerSplit& layer_split) {
    const int n_all = n_layers(need) + 1;
    const int n = std::min(layer_split.n_gpu_layers, n_all);
    return {n_all - n, n};
}

// Bytes of such a layer outside main memory.
std::uint64_t bytes_of(const ModelBytes& need, const LayerSplit& layer_split, int layer) {
    if (layer == n_layers(need)) return need.weights.output;
    const Weights::Layer& one = need.weights.layers[layer];
    return one.bytes - (layer < layer_split.n_cpu_moe ? one.of_experts : 0) + need.text[layer];
}

// Bytes that each device needs to compute. It copies a matrix from main memory before it multiplies
// the matrix with many tokens.
std::uint64_t compute(const ModelBytes& need, const LayerSplit& layer_split) {
    const int first = offloaded(need, layer_split).first;
    std::uint64_t largest = 0;
    for (int layer = 0; layer < n_layers(need); ++layer) {
        const Weights::Layer& one = need.weights.layers[layer];
        if (layer < first || (layer < layer_split.n_cpu_moe && one.of_experts > 0))
            largest = std::max(largest, one.largest);
    }
    return need.compute + largest;
}

// [device]: number of the n layers in proportion to its free memory: those whose index, divided by
// n, is within its part of all free memory.
std::vector<int> in_proportion(int n, DeviceMemories devices) {
    double all = 0;
    for (const DeviceMemory& device : devices) all += static_cast<double>(device.free);
    std::vector<int> split;
    double sum = 0;
    int i = 0;
    for (const DeviceMemory& device : devices) {
        const int before = i;
        sum += static_cast<double>(device.free);
        while (i < n && (split.size() + 1 == devices.size() || i * all < sum * n)) ++i;
        split.push_back(i - before);
    }
    return split;
}

// [device]: number of layers if each device gets as many as fit; empty: not all fit.
std::vector<int> one_after_another(const ModelBytes& need, const LayerSplit& layer_split,
                                   DeviceMemories devices) {
    const auto [first, n] = offloaded(need, layer_split);
    const std::uint64_t computing = compute(need, layer_split);
    std::vector<int> split;
    int i = 0;
    for (const DeviceMemory& device : devices) {
        const int before = i;
        std::uint64_t bytes = computing;
        while (i < n && (bytes += bytes_of(need, layer_split, first + i)) <= device.usable) ++i;
        split.push_back(i - before);
    }
    return i == n ? split : std::vector<int>();
}

}  // namespace

bool fits(const ModelBytes& need, const LayerSplit& layer_split, DeviceMemories devices) {
    const auto [first, n] = offloaded(need, layer_split);
    const std::uint64_t computing = compute(need, layer_split);
    const std::vector<int> split =
        layer_split.split.empty() ? in_proportion(n, devices) : layer_split.split;
    int layer = first;
    for (std::size_t device = 0; device < devices.size(); ++device) {
        std::uint64_t bytes = computing;
        for (const int end = layer + split[device]; layer < end; ++layer)
            bytes += bytes_of(need, layer_split, layer);
        if (split[device] > 0 && bytes > devices[device].usable) return false;
    }
    return true;
}

std::optional<LayerSplit> placed(const ModelBytes& need, int n_gpu_layers, int n_cpu_moe,
                                 DeviceMemories devices) {
    LayerSplit layer_split{n_gpu_layers, n_cpu_moe, {}};
    if (fits(need, layer_split, devices)) return layer_split;
    layer_split.split = one_after_another(need, layer_split, devices);
    if (layer_split.split.empty()) return {};
    return layer_split;
}

std::optional<LayerSplit> whole(const ModelBytes& need, int n_cpu_moe, DeviceMemories devices) {
    return placed(need, n_layers(need) + 1, n_cpu_moe, devices);
}

std::uint64_t in_main_memory(const ModelBytes& need, const LayerSplit& layer_split) {
    const auto [first, n] = offloaded(need, layer_split);
    std::uint64_t bytes = need.weights.total + need.compute;
    if (n > 0 && !need.weights.is_tied) bytes -= need.weights.output;
    for (int layer = 0; layer < n_layers(need); ++layer) {
        bytes += need.text[layer];
        if (layer >= first) bytes -= bytes_of(need, layer_split, layer);
    }
    return bytes;
}

LayerSplit divide(const ModelBytes& need, std::optional<int> n_cpu_moe, DeviceMemories devices) {
    const auto& layers = need.weights.layers;
    const bool has_experts = std::ranges::any_of(
        layers, [](const Weights::Layer& layer) { return layer.of_experts > 0; });
    const int most = n_cpu_moe.value_or(has_experts ? n_layers(need) : 0);
    for (int n = n_cpu_moe.value_or(0); n <= most; ++n)
        if (const auto layer_split = whole(need, n, devices)) return *layer_split;
    for (int n = n_layers(need); n > 0; --n)
        if (const auto layer_split = placed(need, n, most, devices)) return *layer_split;
    return {0, most, {}};
}

}  // namespace specllama
