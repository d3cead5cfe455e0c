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
    };
    std::vector<Layer> layers;
    // What all layers are followed by: it turns the last one's result into logits. A model without
    // such weights of its own uses those of its token embeddings, which are counted here then.
    std::uint64_t output = 0;
    std::uint64_t total = 0;
};

// What a model takes, in bytes.
struct Load {
    const Weights& weights;
    std::uint64_t text = 0;     // what all layers keep of texts, each as much as the others
    std::uint64_t compute = 0;  // on each device that computes, and in main memory
};

// A device's memory, in bytes.
struct DeviceMemory {
    std::uint64_t free = 0;
    std::uint64_t usable = 0;  // of these, less what kernels and other programs may need
};
using DeviceMemories = std::span<const DeviceMemory>;

// How a model is divided between devices and main memory: ModelOptions::n_gpu_layers and n_cpu_moe.
struct Division {
    int n_gpu_layers = 0;
    int n_cpu_moe = 0;

    bool operator==(const Division&) const = default;
};

// All layers on devices, but for the experts of the first n_cpu_moe.
Division undivided(const Weights& weights, int n_cpu_moe);

// Whether devices hold what a division gives them. As llama.cpp does it, each of them gets layers
// in proportion to its free memory.
bool fits(const Load& load, Division division, DeviceMemories devices);

// Bytes that main memory holds.
std::uint64_t in_main_memory(const Load& load, Division division);

// Divides a model between devices and main memory. Experts stay in main memory before anything else
// does, since a token uses few of them; n_cpu_moe: those of so many layers; none: of as few as
// possible. If that is not enough, whole layers stay there, too: the first ones.
Division divide(const Load& load, DeviceMemories devices, std::optional<int> n_cpu_moe);

}  // namespace specllama
