#pragma once

#include <optional>
#include <string>
#include <vector>

#include "specllama/option.h"

namespace specllama {

// The model and its devices. The table below each struct has each option's effect, range and
// special values.

// A LoRA adapter: a change of a model's weights (Hu et al., 2021), in a separate GGUF file.
struct LoraAdapter {
    std::string path;
    // Factor of the change; 1: as trained, 0: no change.
    float scale = 1;
};

// The model and its devices.
struct ModelOptions {
    std::string path;
    std::optional<int> n_gpu_layers;
    std::optional<int> n_cpu_moe;
    std::vector<float> tensor_split;
    std::string device;
    std::string rpc;
    std::vector<LoraAdapter> lora;
    std::string load_mode = "auto";
};

template <typename Visit>
void list_options(const ModelOptions*, Visit&& option) {
    using Options = ModelOptions;
    option(&Options::path, {.name = "model"});
    option(&Options::n_gpu_layers,
           {.name = "n_gpu_layers",
            .help = "Number of layers on GPUs. They are the last ones, and the output counts as "
                    "one more. A notice says if not all fit. 0: no device is used at all.",
            .low = -1,
            .special = "-1: all that fit",
            .unset = "-1, or 0 with exact",
            .words = "auto=-1 all=-1",
            .flags = "-ngl --n-gpu-layers --gpu-layers"});
    option(&Options::n_cpu_moe,
           {.name = "n_cpu_moe",
            .help = "Keep the experts' weights of the first N layers in main memory.",
            .low = 0,
            .unset = "the minimum needed to fit all layers",
            .flags = "-ncmoe --n-cpu-moe"});
    option(&Options::tensor_split,
           {.name = "tensor_split",
            .help = "Proportions in which layers are divided among the GPUs. One number for each "
                    "GPU, in the order of `list_devices` or `device`.",
            .unset = "by free memory",
            .flags = "-ts --tensor-split",
            .value = "N,N,..."});
    option(&Options::device, {.name = "device",
                              .help = "GPUs to use, by their names in `spec-cli --list-devices`; "
                                      "none: no GPU. Names are separated by commas.",
                              .unset = "all",
                              .flags = "-dev --device",
                              .value = "NAME,..."});
    option(&Options::rpc,
           {.name = "rpc",
            .help = "RPC servers of llama.cpp that also hold layers; not encrypted "
                    "(docs/guides/rpc.md). Their devices come before this machine's GPUs, and "
                    "layers are divided by free memory. Nothing is authenticated, and the process "
                    "ends if a server is lost. A draft model stays on this machine.",
            .unset = "none",
            .flags = "--rpc",
            .value = "HOST:PORT,..."});
    option(&Options::lora, {.name = "lora",
                            .help = "LoRA adapters of the model, GGUF files. Made by "
                                    "convert_lora_to_gguf.py of llama.cpp; 8 at most. A session "
                                    "with adapters is not exact, and a draft model has none.",
                            .unset = "none",
                            .flags = "--lora",
                            .value = "FILE,..."});
    option(&Options::load_mode,
           {.name = "load_mode",
            .help = "Loading of weights; mmap: mapped from the file, none: read, mlock: also "
                    "locked in RAM, dio: read by direct I/O. auto: mapped, unless a GPU does not "
                    "support it. Locked memory is never swapped out.",
            .choices = "auto none mmap mlock mmap+mlock dio",
            .flags = "-lm --load-mode",
            .value = "MODE"});
}

}  // namespace specllama
