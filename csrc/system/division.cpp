#include "system/division.h"

#include <algorithm>

namespace specllama {

namespace {

int n_layers(const Weights& weights) { return static_cast<int>(weights.layers.size()); }

// Layers on devices and, as llama.cpp counts, the output as one more behind them.
struct Offloaded {
    int first;
    int n;
};
Offloaded offloaded(const Weights& weights, Division division) {
    const int n_all = n_layers(weights) + 1;
    const int n = std::min(division.n_gpu_layers, n_all);
    return {n_all - n, n};
}

// Bytes of the weights of such a layer that are not in main memory.
std::uint64_t weights_of(const Weights& weights, Division division, int layer) {
    if (layer == n_layers(weights)) return weights.output;
    const Weights::Layer& one = weights.layers[layer];
    return one.bytes - (layer < division.n_cpu_moe ? one.of_experts : 0);
}

// Bytes of the text's memory in such a layer.
std::uint64_t text_of(const Load& load, int layer) {
    const int n = n_layers(load.weights);
    return layer == n ? 0 : load.text / n;
}

}  // namespace

Division undivided(const Weights& weights, int n_cpu_moe) {
    return {n_layers(weights) + 1, n_cpu_moe};
}

bool fits(const Load& load, Division division, DeviceMemories devices) {
    const auto [first, n] = offloaded(load.weights, division);
    double all_free = 0;
    for (const DeviceMemory& device : devices) all_free += static_cast<double>(device.free);
    double free = 0;  // of the devices so far
    int i = 0;        // layers that these hold
    for (const DeviceMemory& device : devices) {
        free += static_cast<double>(device.free);
        std::uint64_t bytes = load.compute;
        int n_here = 0;
        for (; i < n && (&device == &devices.back() || i * all_free < free * n); ++i, ++n_here)
            bytes += weights_of(load.weights, division, first + i) + text_of(load, first + i);
        if (n_here > 0 && bytes > device.usable) return false;
    }
    return true;
}

// A model may use its token embeddings as the output, too; then they lie in both places.
std::uint64_t in_main_memory(const Load& load, Division division) {
    const auto [first, n] = offloaded(load.weights, division);
    std::uint64_t bytes = load.weights.total + load.text + load.compute;
    for (int layer = first; layer < n_layers(load.weights); ++layer)
        bytes -= weights_of(load.weights, division, layer) + text_of(load, layer);
    return bytes;
}

Division divide(const Load& load, DeviceMemories devices, std::optional<int> n_cpu_moe) {
    const auto& layers = load.weights.layers;
    const bool has_experts = std::ranges::any_of(
        layers, [](const Weights::Layer& layer) { return layer.of_experts > 0; });
    Division division = undivided(load.weights, n_cpu_moe.value_or(0));
    const int most = n_cpu_moe.value_or(has_experts ? n_layers(load.weights) : 0);
    while (!fits(load, division, devices) && division.n_cpu_moe < most) ++division.n_cpu_moe;
    while (!fits(load, division, devices)) --division.n_gpu_layers;
    return division;
}

}  // namespace specllama
