#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace specllama {

// The bytes of a model's weights, by layer.
struct Weights {
    struct Layer {
        std::uint64_t bytes = 0;
        std::uint64_t of_experts = 0;  // of these bytes
        std::uint64_t largest = 0;     // bytes of the largest matrix
    };
    std::vector<Layer> layers;
    // The output after all layers, which computes the logits. is_tied: the model uses its token
    // embeddings for it, so a device needs a copy of them.
    std::uint64_t output = 0;
    bool is_tied = false;
    std::uint64_t total = 0;
};

// The memory that a model needs, in bytes.
struct ModelBytes {
    const Weights& weights;
    std::vector<std::uint64_t> text;  // [layer]: memory for texts
    std::uint64_t compute = 0;        // on each device in use, and in main memory
};

// A device's memory, in bytes.
struct DeviceMemory {
    std::uint64_t free = 0;
    std::uint64_t usable =
        0;  // of these, minus the needs of kernels, other models and other programs
};
using DeviceMemories = std::span<const DeviceMemory>;

// How a model is divided between devices and main memory: ModelOptions::n_gpu_layers, n_cpu_moe and
// tensor_split.
struct LayerSplit {
    int n_gpu_layers = 0;
    int n_cpu_moe = 0;
    // [device]: number of these layers on it; empty: llama.cpp's default, in proportion to free
    // memory.
    std::vector<int> split;

    bool operator==(const LayerSplit&) const = default;
};

// Whether a split fits the devices.
bool fits(const ModelBytes& need, const LayerSplit& layer_split, DeviceMemories devices);

// A split that fits, with n_gpu_layers layers on devices; none: there is no such split.
std::optional<LayerSplit> placed(const ModelBytes& need, int n_gpu_layers, int n_cpu_moe,
                                 DeviceMemories devices);
// The same with all layers on devices.
std::optional<LayerSplit> whole(const ModelBytes& need, int n_cpu_moe, DeviceMemories devices);

// Bytes in main memory.
std::uint64_t in_main_memory(const ModelBytes& need, const LayerSplit& layer_split);

// Divides a model between devices and main memory. Experts stay in main memory first, since a token
// uses few of them. n_cpu_moe: number of layers whose experts stay there; none: as few as possible.
// If that is not enough, whole layers stay there, too, beginning with the first.
LayerSplit divide(const ModelBytes& need, std::optional<int> n_cpu_moe, DeviceMemories devices);

}  // namespace specllama
