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
        .def_readonly("can_draft", &ModelFile::can_draft)
        .def_readonly("head", &ModelFile::head)
        .def_readonly("brings_head", &ModelFile::brings_head);
    m.def("read_model_file", &read_model_file, py::arg("path"),
          py::call_guard<py::gil_scoped_release>(),
          "Read headers and vocabulary of a GGUF file, but no weights.");
    m.def("brings_head", &brings_head, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
          "Whether a model's file brings a head along that can draft for it.");
    m.def("head_fault", &head_fault, py::arg("head"), py::arg("target"),
          py::call_guard<py::gil_scoped_release>(),
          "Why a head cannot draft for a model, as a sentence.");
    m.def("automatic_draft", &automatic_draft, py::arg("target"), py::kw_only(),
          py::arg("bundled_draft"), py::call_guard<py::gil_scoped_release>(),
          "What drafts for a model if its user does not say.");
}

}  // namespace specllama
