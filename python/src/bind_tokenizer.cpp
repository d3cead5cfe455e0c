#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/tokenizer.h"
#include "token_array.h"

namespace specllama {

namespace {

TokenArray tokenize(const Tokenizer& tokenizer, std::string_view text) {
    std::vector<Token> tokens;
    {
        const py::gil_scoped_release release;
        tokens = tokenizer.tokenize(text);
    }
    return to_array(std::move(tokens));
}

}  // namespace

void bind_tokenizer(py::module_& m) {
    py::class_<Tokenizer>(m, "Tokenizer", "The vocabulary of a GGUF file, without its weights.",
                          py::release_gil_before_calling_cpp_dtor())
        .def(py::init<const std::string&>(), py::call_guard<py::gil_scoped_release>(),
             py::arg("path"))
        .def("tokenize", &tokenize, py::arg("text"))
        .def_property_readonly("n_vocab", &Tokenizer::n_vocab)
        .def_property_readonly("fingerprint", &Tokenizer::fingerprint);
}

}  // namespace specllama
