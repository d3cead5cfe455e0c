#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "specllama/session_options.h"
#include "system/layer_split.h"

namespace specllama {

// The devices that a model's layers may go to: the GPUs among those that options.device names, or,
// if it names none, all devices of options.rpc and all GPUs; empty if n_gpu_layers is 0. Throws
// InvalidArgument if n_gpu_layers or n_cpu_moe is out of range, if a named device does not exist,
// if the options contradict each other, or if there are too many devices, and what rpc_devices
// throws. prefix: put before the names of options in messages: "draft_" for those of a draft model.
std::vector<ggml_backend_dev_t> offload_devices(const ModelOptions& options,
                                                const std::string& prefix = "");

// Where a model's weights will lie.
struct MemoryBudget {
    std::string where;
    std::uint64_t bytes = 0;            // that are free there; 0: not known
    std::vector<DeviceMemory> devices;  // none: it is main memory
    std::vector<std::string> names;     // of these
};
MemoryBudget memory_budget(const ModelOptions& options);

}  // namespace specllama
