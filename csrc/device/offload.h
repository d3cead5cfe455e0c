#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "specllama/session_options.h"
#include "system/layer_split.h"

namespace specllama {

// The devices for a model's layers: the GPUs among those in options.device or, if it is empty, all
// devices of options.rpc and all GPUs; none if n_gpu_layers is 0. Throws InvalidArgument if
// tensor_split has a wrong value, a device does not exist, the options contradict each other, or
// there are too many devices; and the errors of rpc_devices. prefix: prefix of the options' names
// in messages, such as "draft_" for a draft model.
std::vector<ggml_backend_dev_t> offload_devices(const ModelOptions& options,
                                                const std::string& prefix = "");

// The memory for a model's weights.
struct MemoryBudget {
    std::string where;
    std::uint64_t bytes = 0;            // free bytes; 0: unknown
    std::vector<DeviceMemory> devices;  // empty: main memory
    std::vector<std::string> names;     // of these
};
MemoryBudget memory_budget(const ModelOptions& options);

}  // namespace specllama
