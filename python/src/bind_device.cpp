#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl/filesystem.h>

#include "bind.h"
#include "device/amx.h"
#include "files/cache_folder.h"
#include "specllama/device.h"

namespace specllama {

void bind_device(py::module_& m) {
    py::class_<Device>(m, "Device", "A device that llama.cpp can use; memory in bytes.")
        .def_readonly("name", &Device::name)
        .def_readonly("description", &Device::description)
        .def_readonly("memory_free", &Device::memory_free)
        .def_readonly("memory_total", &Device::memory_total)
        .def_readonly("takes_layers", &Device::takes_layers)
        .def("__repr__", [](const Device& device) {
            return py::str("Device(name={!r}, description={!r}, memory_free={}, memory_total={})")
                .format(device.name, device.description, device.memory_free, device.memory_total);
        });
    m.def("list_devices", &list_devices, py::arg("rpc") = "",
          py::call_guard<py::gil_scoped_release>(),
          "Return the devices that llama.cpp can use, those of RPC servers first.");
    m.def("cpu_kernels", &cpu_kernels, py::call_guard<py::gil_scoped_release>(),
          "Return the kernels for weights that this processor supports.");
    m.def(
        "try_amx",
        [](std::vector<std::string> command, std::string expected, const std::string& libraries,
           double seconds, std::string key, const std::string& folder) {
            const AmxTrial trial{std::move(command), std::move(expected),
                                 libraries,          seconds,
                                 std::move(key),     folder};
            const py::gil_scoped_release release;
            std::string notice;
            const bool works = trial.works(notice);
            return std::pair(works, notice);
        },
        py::kw_only(), py::arg("command"), py::arg("expected"), py::arg("libraries"),
        py::arg("seconds"), py::arg("key"), py::arg("folder"),
        "Test whether AMX works, as sessions do, with a given program.");
    m.def("has_amx", &has_amx, "Whether llama.cpp has AMX kernels and the processor has AMX.");
    m.def(
        "cache_folder",
        []() -> std::optional<std::filesystem::path> {
            std::filesystem::path folder = cache_folder();
            if (folder.empty()) return std::nullopt;
            return folder;
        },
        "Return the folder of cached measurements, or None.");
}

}  // namespace specllama
