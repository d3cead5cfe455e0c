#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/model_file.h"
#include "specllama/tokenizer.h"
#include "token_array.h"

namespace specllama {

void bind_model_file(py::module_& m) {
    py::class_<ModelFile>(m, "ModelFile", "Properties of a model from its GGUF file.")
        .def_readonly("architecture", &ModelFile::architecture)
        .def_readonly("weight_type", &ModelFile::weight_type)
        .def_readonly("n_parameters", &ModelFile::n_parameters)
        .def_readonly("weight_bytes", &ModelFile::weight_bytes)
        .def_readonly("n_tokens", &ModelFile::n_tokens)
        .def_readonly("width", &ModelFile::width)
        .def_readonly("vocabulary", &ModelFile::vocabulary)
        .def_readonly("can_draft", &ModelFile::can_draft)
        .def_readonly("head", &ModelFile::head)
        .def_readonly("brings_head", &ModelFile::brings_head);
    m.def("read_model_file", &read_model_file, py::arg("path"),
          py::call_guard<py::gil_scoped_release>(),
          "Read headers and vocabulary of a GGUF file, but no weights.");
    py::class_<ProjectorFile>(m, "ProjectorFile")
        .def_readonly("sees", &ProjectorFile::sees)
        .def_readonly("hears", &ProjectorFile::hears)
        .def_readonly("width", &ProjectorFile::width);
    m.def("read_projector", &read_projector, py::arg("path"),
          py::call_guard<py::gil_scoped_release>(),
          "Read the header of a multimodal projector's GGUF file.");
    m.def("brings_head", &brings_head, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
          "Whether a model's file includes a head that can draft for it.");
    m.def("check_head", &check_head, py::arg("head"), py::arg("target"),
          py::call_guard<py::gil_scoped_release>(), "Raise unless a head can draft for a model.");
    m.def("automatic_draft", &automatic_draft, py::arg("target"), py::kw_only(),
          py::arg("bundled_draft"), py::call_guard<py::gil_scoped_release>(),
          "Return the default drafter of a model.");
    m.def(
        "slow_types", &slow_types, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
        "Return a sentence about a model's types that are slow on this machine's CPU; \"\": none.");
    m.def(
        "draft_in_type",
        [](const std::string& draft, const std::string& target, const std::string& type) {
            const py::gil_scoped_release release;
            return draft_in_type(draft, target, type, [](float) {
                const py::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                return true;
            });
        },
        py::arg("draft"), py::kw_only(), py::arg("target"), py::arg("type"),
        "Return the file that drafts for a target if draft_type is `type`.");
}

void bind_tokenizer(py::module_& m) {
    py::class_<Tokenizer, std::shared_ptr<Tokenizer>>(
        m, "Tokenizer", "The vocabulary of a GGUF file, without its weights.",
        py::release_gil_before_calling_cpp_dtor())
        .def(py::init<const std::string&>(), py::call_guard<py::gil_scoped_release>(),
             py::arg("path"))
        .def("tokenize", &tokenize<Tokenizer>, py::arg("text"), py::kw_only(),
             py::arg("add_special") = true, py::arg("parse_special") = true,
             py::arg("plain") = py::tuple())
        .def(
            "detokenize",
            [](const Tokenizer& tokenizer, const Tokens& tokens, bool special) {
                return tokenizer.detokenize(tokens, special);
            },
            py::arg("tokens"), py::kw_only(), py::arg("special"))
        .def("is_end", &Tokenizer::is_end, py::arg("token"))
        .def("vocabulary_table", &Tokenizer::vocabulary_table,
             py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("n_vocab", &Tokenizer::n_vocab)
        .def_property_readonly("fingerprint", &Tokenizer::fingerprint)
        .def_property_readonly("vocabulary", &Tokenizer::vocabulary)
        .def_property_readonly("bos", &Tokenizer::bos)
        .def_property_readonly("eos", &Tokenizer::eos)
        .def_property_readonly("fim",
                               [](const Tokenizer& tokenizer) {
                                   const FimTokens fim = tokenizer.fim();
                                   return py::make_tuple(fim.prefix, fim.suffix, fim.middle,
                                                         fim.repository, fim.file);
                               })
        .def_property_readonly("chat_template", &Tokenizer::chat_template);
}

}  // namespace specllama
