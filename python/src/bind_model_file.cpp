#include "bind.h"
#include "specllama/model_file.h"

namespace specllama {

void bind_model_file(py::module_& m) {
    py::class_<ModelFile>(m, "ModelFile", "What a GGUF file says about its model.")
        .def_readonly("architecture", &ModelFile::architecture)
        .def_readonly("weight_type", &ModelFile::weight_type)
        .def_readonly("n_parameters", &ModelFile::n_parameters)
        .def_readonly("weight_bytes", &ModelFile::weight_bytes)
        .def_readonly("n_tokens", &ModelFile::n_tokens)
        .def_readonly("vocabulary", &ModelFile::vocabulary)
        .def_readonly("can_draft", &ModelFile::can_draft);
    m.def("read_model_file", &read_model_file, py::arg("path"),
          py::call_guard<py::gil_scoped_release>(),
          "Read headers and vocabulary of a GGUF file, but no weights.");
}

}  // namespace specllama
