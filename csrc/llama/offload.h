#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "specllama/config.h"

namespace specllama {

// The devices that a model's layers may go to: those that options.device names, or all of
// options.rpc and all GPUs; none where n_gpu_layers is 0. Throws InvalidArgument when there is no
// such device, or these contradict, and what rpc_devices throws.
std::vector<ggml_backend_dev_t> offload_devices(const ModelOptions& options);

// What holds a model's weights, and its free bytes; 0: not known.
struct Room {
    std::string where;
    std::uint64_t bytes = 0;
};
Room room(const ModelOptions& options);

}  // namespace specllama
