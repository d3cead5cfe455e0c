#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/tokenizer.h"
#include "token_array.h"

namespace specllama {

namespace {

TokenArray tokenize(const Tokenizer& tokenizer, std::string_view text, bool add_special,
                    bool parse_special,
                    const std::vector<std::pair<std::size_t, std::size_t>>& plain) {
    std::vector<Token> tokens;
    {
        const py::gil_scoped_release release;
        tokens = tokenizer.tokenize(text, add_special, parse_special, plain);
    }
    return to_array(std::move(tokens));
}

}  // namespace

void bind_tokenizer(py::module_& m) {
    py::class_<Tokenizer, std::shared_ptr<Tokenizer>>(
        m, "Tokenizer", "The vocabulary of a GGUF file, without its weights.",
        py::release_gil_before_calling_cpp_dtor())
        .def(py::init<const std::string&>(), py::call_guard<py::gil_scoped_release>(),
             py::arg("path"))
        .def("tokenize", &tokenize, py::arg("text"), py::kw_only(), py::arg("add_special") = true,
             py::arg("parse_special") = true, py::arg("plain") = py::tuple())
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
