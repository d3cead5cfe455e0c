#include "llama/offload.h"

#include <algorithm>
#include <sstream>

#include "llama/backend.h"
#include "specllama/error.h"
#include "system/host.h"

namespace specllama {

namespace {

bool is_gpu(ggml_backend_dev_t device) {
    const auto type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

std::vector<ggml_backend_dev_t> all_devices() {
    ensure_backend();
    std::vector<ggml_backend_dev_t> devices;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
        devices.push_back(ggml_backend_dev_get(i));
    return devices;
}

std::vector<ggml_backend_dev_t> named_devices(const std::string& names) {
    const std::vector<ggml_backend_dev_t> all = all_devices();
    std::vector<ggml_backend_dev_t> named;
    std::istringstream stream(names);
    for (std::string name; std::getline(stream, name, ',');) {
        const auto found = std::ranges::find_if(
            all, [&](ggml_backend_dev_t device) { return ggml_backend_dev_name(device) == name; });
        if (found == all.end()) {
            std::string known;
            for (ggml_backend_dev_t device : all)
                known += std::string(ggml_backend_dev_name(device)) + ", ";
            throw InvalidArgument("There is no device \"" + name + "\"; there are: " + known +
                                  "and none.");
        }
        if (is_gpu(*found)) named.push_back(*found);
    }
    return named;
}

}  // namespace

std::vector<ggml_backend_dev_t> offload_devices(const ModelOptions& options) {
    const int n_layers = options.n_gpu_layers.value_or(-1);
    std::vector<ggml_backend_dev_t> devices;
    if (options.device.empty()) {
        if (n_layers == 0) return {};
        devices = all_devices();
        std::erase_if(devices, [](ggml_backend_dev_t device) { return !is_gpu(device); });
    } else if (options.device != "none") {
        devices = named_devices(options.device);
    }
    if (n_layers == 0 && !devices.empty())
        throw InvalidArgument("device is \"" + options.device +
                              "\", but n_gpu_layers is 0; leave one of the two out.");
    return devices;
}

Room room(const ModelOptions& options) {
    Room gpus;
    for (ggml_backend_dev_t device : offload_devices(options)) {
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        gpus.bytes += free;
        gpus.where +=
            (gpus.where.empty() ? "" : " and ") + std::string(ggml_backend_dev_name(device));
    }
    if (gpus.bytes == 0) return {"main memory", memory_available()};
    // Some layers here, some there: llama.cpp itself must say whether that fits.
    if (options.n_gpu_layers.value_or(-1) != -1) gpus.bytes = 0;
    return gpus;
}

}  // namespace specllama
