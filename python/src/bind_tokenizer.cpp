#include <pybind11/numpy.h>

#include "bind.h"
#include "specllama/tokenizer.h"

namespace specllama {

namespace {

py::array_t<Token> tokenize(const Tokenizer& tokenizer, const std::string& text) {
    std::vector<Token> tokens;
    {
        const py::gil_scoped_release release;
        tokens = tokenizer.tokenize(text);
    }
    return py::array_t<Token>(static_cast<py::ssize_t>(tokens.size()), tokens.data());
}

}  // namespace

void bind_tokenizer(py::module_& m) {
    py::class_<Tokenizer>(m, "Tokenizer", "The vocabulary of a GGUF file, without its weights.")
        .def(py::init<const std::string&>(), py::call_guard<py::gil_scoped_release>(),
             py::arg("path"))
        .def("tokenize", &tokenize, py::arg("text"))
        .def_property_readonly("n_vocab", &Tokenizer::n_vocab)
        .def_property_readonly("fingerprint", &Tokenizer::fingerprint);
}

}  // namespace specllama
