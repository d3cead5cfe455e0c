#include "device/offload.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "device/rpc.h"
#include "llama/backend.h"
#include "specllama/device.h"
#include "specllama/error.h"
#include "system/host.h"

namespace specllama {

namespace {

bool is_gpu(ggml_backend_dev_t device) {
    const auto type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

// The most devices that llama.cpp schedules, without the CPU and an accelerator of it.
constexpr std::size_t kMostDevices = 14;

// Maximum number of bytes of a device that are left free: the needs of its kernels beyond
// llama.cpp's buffers are unknown, and other programs may use it, such as a desktop.
constexpr std::size_t kMaxReserve = std::size_t{1} << 30;

std::vector<ggml_backend_dev_t> own_devices() {
    ensure_backend();
    std::vector<ggml_backend_dev_t> devices;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
        devices.push_back(ggml_backend_dev_get(i));
    return devices;
}

// This machine's GPUs, chosen as in llama.cpp: integrated ones only if there are no others.
std::vector<ggml_backend_dev_t> own_gpus() {
    std::vector<ggml_backend_dev_t> gpus = own_devices();
    const auto is_discrete = [](ggml_backend_dev_t device) {
        return ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_GPU;
    };
    const bool discrete = std::ranges::any_of(gpus, is_discrete);
    std::erase_if(gpus, [&](ggml_backend_dev_t device) {
        return discrete ? !is_discrete(device) : !is_gpu(device);
    });
    return gpus;
}

using Devices = std::vector<ggml_backend_dev_t>;

Devices joined(Devices first, const Devices& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

Devices named_devices(const std::string& names, const Devices& all) {
    Devices named;
    std::istringstream stream(names);
    for (std::string name; std::getline(stream, name, ',');) {
        const auto found = std::ranges::find_if(
            all, [&](ggml_backend_dev_t device) { return ggml_backend_dev_name(device) == name; });
        if (found == all.end()) {
            std::string known;
            for (ggml_backend_dev_t device : all)
                known += std::string(ggml_backend_dev_name(device)) + ", ";
            throw InvalidArgument("There is no device \"" + name + "\"; choose from: " + known +
                                  "none.");
        }
        if (is_gpu(*found)) named.push_back(*found);
    }
    return named;
}

}  // namespace

std::vector<ggml_backend_dev_t> offload_devices(const ModelOptions& options,
                                                const std::string& prefix) {
    const int n_layers = options.n_gpu_layers.value_or(-1);
    const std::vector<float>& split = options.tensor_split;
    if (!std::ranges::all_of(split, [](float part) { return part >= 0 && std::isfinite(part); }) ||
        (!split.empty() && std::ranges::count(split, 0.0F) == std::ssize(split)))
        throw InvalidArgument(prefix +
                              "tensor_split must have numbers of at least 0, not all of them 0.");
    const bool no_layers = n_layers == 0;
    if (!options.rpc.empty() && (no_layers || options.device == "none"))
        throw InvalidArgument("rpc is given, but " + prefix +
                              (no_layers ? "n_gpu_layers is 0" : "device is \"none\"") +
                              "; leave one of the two out.");
    if (options.device == "none" || (options.device.empty() && no_layers)) return {};
    const Devices remote = rpc_devices(options.rpc);
    // Devices of RPC servers come first, as in llama.cpp: the output of the last layer is then
    // local.
    const Devices devices = options.device.empty()
                                ? joined(remote, own_gpus())
                                : named_devices(options.device, joined(remote, own_devices()));
    if (no_layers && !devices.empty())
        throw InvalidArgument(prefix + "device is \"" + options.device + "\", but " + prefix +
                              "n_gpu_layers is 0; leave one of the two out.");
    if (split.size() > devices.size())
        throw InvalidArgument(prefix + "tensor_split has " + std::to_string(split.size()) +
                              " numbers; there are " + std::to_string(devices.size()) +
                              " devices.");
    if (devices.size() > kMostDevices)
        throw InvalidArgument("llama.cpp supports at most " + std::to_string(kMostDevices) +
                              " devices for a model, not " + std::to_string(devices.size()) + ".");
    return devices;
}

std::vector<Device> list_devices(const std::string& rpc) {
    std::vector<Device> devices;
    const Devices remote = rpc_devices(rpc);
    const Devices for_layers = joined(remote, own_gpus());
    for (ggml_backend_dev_t device : joined(remote, own_devices())) {
        Device& found = devices.emplace_back();
        found.name = ggml_backend_dev_name(device);
        found.description = ggml_backend_dev_description(device);
        ggml_backend_dev_memory(device, &found.memory_free, &found.memory_total);
        found.takes_layers = std::ranges::count(for_layers, device) > 0;
    }
    return devices;
}

MemoryBudget memory_budget(const ModelOptions& options) {
    MemoryBudget gpus;
    for (ggml_backend_dev_t device : offload_devices(options)) {
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        gpus.bytes += free;
        const std::size_t reserve = std::min({free, kMaxReserve, total / 16});
        gpus.devices.push_back({free, free - reserve});
        gpus.names.emplace_back(ggml_backend_dev_name(device));
        gpus.where +=
            (gpus.where.empty() ? "" : " and ") + std::string(ggml_backend_dev_name(device));
    }
    if (gpus.bytes == 0) return {"main memory", memory_available(), {}, {}};
    // With only some of the layers on GPUs, llama.cpp itself must check whether they fit.
    if (options.n_gpu_layers.value_or(-1) != -1 || !options.tensor_split.empty()) gpus.bytes = 0;
    return gpus;
}

}  // namespace specllama
