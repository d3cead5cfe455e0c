#include "system/division.h"

#include <algorithm>

namespace specllama {

namespace {

int n_layers(const Load& load) { return static_cast<int>(load.weights.layers.size()); }

// Layers on devices and, as llama.cpp counts, the output as one more behind them.
struct Offloaded {
    int first;
    int n;
};
Offloaded offloaded(const Load& load, const Division& division) {
    const int n_all = n_layers(load) + 1;
    const int n = std::min(division.n_gpu_layers, n_all);
    return {n_all - n, n};
}

// Bytes of such a layer that are not in main memory.
std::uint64_t bytes_of(const Load& load, const Division& division, int layer) {
    if (layer == n_layers(load)) return load.weights.output;
    const Weights::Layer& one = load.weights.layers[layer];
    return one.bytes - (layer < division.n_cpu_moe ? one.of_experts : 0) + load.text[layer];
}

// Bytes that each device needs to compute. Before it multiplies many tokens with a matrix that lies
// in main memory, it fetches that.
std::uint64_t compute(const Load& load, const Division& division) {
    const int first = offloaded(load, division).first;
    std::uint64_t largest = 0;
    for (int layer = 0; layer < n_layers(load); ++layer) {
        const Weights::Layer& one = load.weights.layers[layer];
        if (layer < first || (layer < division.n_cpu_moe && one.of_experts > 0))
            largest = std::max(largest, one.largest);
    }
    return load.compute + largest;
}

// [device]: how many of n layers it gets in proportion to its free memory: those whose number,
// divided by n, lies in its part of it all.
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

// [device]: how many layers it gets if each gets as many as it holds; empty: they do not hold all.
std::vector<int> one_after_another(const Load& load, const Division& division,
                                   DeviceMemories devices) {
    const auto [first, n] = offloaded(load, division);
    const std::uint64_t computing = compute(load, division);
    std::vector<int> split;
    int i = 0;
    for (const DeviceMemory& device : devices) {
        const int before = i;
        std::uint64_t bytes = computing;
        while (i < n && (bytes += bytes_of(load, division, first + i)) <= device.usable) ++i;
        split.push_back(i - before);
    }
    return i == n ? split : std::vector<int>();
}

}  // namespace

bool fits(const Load& load, const Division& division, DeviceMemories devices) {
    const auto [first, n] = offloaded(load, division);
    const std::uint64_t computing = compute(load, division);
    const std::vector<int> split =
        division.split.empty() ? in_proportion(n, devices) : division.split;
    int layer = first;
    for (std::size_t device = 0; device < devices.size(); ++device) {
        std::uint64_t bytes = computing;
        for (const int end = layer + split[device]; layer < end; ++layer)
            bytes += bytes_of(load, division, layer);
        if (split[device] > 0 && bytes > devices[device].usable) return false;
    }
    return true;
}

std::optional<Division> placed(const Load& load, int n_gpu_layers, int n_cpu_moe,
                               DeviceMemories devices) {
    Division division{n_gpu_layers, n_cpu_moe, {}};
    if (fits(load, division, devices)) return division;
    division.split = one_after_another(load, division, devices);
    if (division.split.empty()) return {};
    return division;
}

std::optional<Division> whole(const Load& load, int n_cpu_moe, DeviceMemories devices) {
    return placed(load, n_layers(load) + 1, n_cpu_moe, devices);
}

std::uint64_t in_main_memory(const Load& load, const Division& division) {
    const auto [first, n] = offloaded(load, division);
    std::uint64_t bytes = load.weights.total + load.compute;
    if (n > 0 && !load.weights.is_tied) bytes -= load.weights.output;
    for (int layer = 0; layer < n_layers(load); ++layer) {
        bytes += load.text[layer];
        if (layer >= first) bytes -= bytes_of(load, division, layer);
    }
    return bytes;
}

Division divide(const Load& load, std::optional<int> n_cpu_moe, DeviceMemories devices) {
    const auto& layers = load.weights.layers;
    const bool has_experts = std::ranges::any_of(
        layers, [](const Weights::Layer& layer) { return layer.of_experts > 0; });
    const int most = n_cpu_moe.value_or(has_experts ? n_layers(load) : 0);
    for (int n = n_cpu_moe.value_or(0); n <= most; ++n)
        if (const auto division = whole(load, n, devices)) return *division;
    for (int n = n_layers(load); n > 0; --n)
        if (const auto division = placed(load, n, most, devices)) return *division;
    return {0, most, {}};
}

}  // namespace specllama
