#include "bind.h"
#include "specllama/device.h"

namespace specllama {

void bind_device(py::module_& m) {
    py::class_<Device>(m, "Device", "A processor that llama.cpp can compute on; memory in bytes.")
        .def_readonly("name", &Device::name)
        .def_readonly("description", &Device::description)
        .def_readonly("memory_free", &Device::memory_free)
        .def_readonly("memory_total", &Device::memory_total)
        .def("__repr__", [](const Device& device) {
            return py::str("Device(name={!r}, description={!r}, memory_free={}, memory_total={})")
                .format(device.name, device.description, device.memory_free, device.memory_total);
        });
    m.def("list_devices", &list_devices, py::arg("rpc") = "",
          py::call_guard<py::gil_scoped_release>(),
          "Return the processors that llama.cpp can compute on, behind those of RPC servers.");
    m.def("cpu_kernels", &cpu_kernels, py::call_guard<py::gil_scoped_release>(),
          "Return which kernels for weights there are for this processor.");
    m.def("set_verbose", &set_verbose, py::arg("verbose"));
    m.attr("version") = version();
    m.attr("llama_cpp_version") = llama_cpp_version();
}

}  // namespace specllama
