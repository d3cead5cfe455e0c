#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace specllama {

// The bytes of a model's weights, by the place that they have in the model.
struct Weights {
    struct Layer {
        std::uint64_t bytes = 0;
        std::uint64_t of_experts = 0;  // of these bytes
        std::uint64_t largest = 0;     // those of the largest matrix
    };
    std::vector<Layer> layers;
    // What all layers are followed by: it turns the last one's result into logits. A model without
    // such weights of its own uses those of its token embeddings (is_tied): of these a device needs
    // a copy.
    std::uint64_t output = 0;
    bool is_tied = false;
    std::uint64_t total = 0;
};

// What a model takes, in bytes.
struct ModelBytes {
    const Weights& weights;
    std::vector<std::uint64_t> text;  // [layer]: what it keeps of texts
    std::uint64_t compute = 0;        // on each device that computes, and in main memory
};

// A device's memory, in bytes.
struct DeviceMemory {
    std::uint64_t free = 0;
    std::uint64_t usable = 0;  // of these, less what kernels, other models and programs need
};
using DeviceMemories = std::span<const DeviceMemory>;

// How a model is divided between devices and main memory: ModelOptions::n_gpu_layers, n_cpu_moe and
// tensor_split.
struct LayerSplit {
    int n_gpu_layers = 0;
    int n_cpu_moe = 0;
    // [device]: how many of these layers it gets; empty: as llama.cpp does it, each gets layers in
    // proportion to its free memory.
    std::vector<int> split;

    bool operator==(const LayerSplit&) const = default;
};

// Whether devices hold what a split gives them.
bool fits(const ModelBytes& need, const LayerSplit& layer_split, DeviceMemories devices);

// A split that gives devices so many layers, and that they hold; none: there is none.
std::optional<LayerSplit> placed(const ModelBytes& need, int n_gpu_layers, int n_cpu_moe,
                                 DeviceMemories devices);
// The same with all layers on devices.
std::optional<LayerSplit> whole(const ModelBytes& need, int n_cpu_moe, DeviceMemories devices);

// Bytes that main memory holds.
std::uint64_t in_main_memory(const ModelBytes& need, const LayerSplit& layer_split);

// Divides a model between devices and main memory. Experts stay in main memory before anything else
// does, since a token uses few of them; n_cpu_moe: those of so many layers; none: of as few as
// possible. If that is not enough, whole layers stay there, too: the first ones.
LayerSplit divide(const ModelBytes& need, std::optional<int> n_cpu_moe, DeviceMemories devices);

}  // namespace specllama
