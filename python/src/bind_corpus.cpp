#include <algorithm>
#include <string>
#include <vector>

#include "bind.h"
#include "draft/corpus.h"
#include "draft/corpus_builder.h"
#include "matched_token.h"
#include "token_arguments.h"
#include "token_array.h"

namespace specllama {

namespace {

void append(CorpusBuilder& builder, const Tokens& tokens) {
    for (const Token token : TokenSpan(tokens)) check_token(token);
    builder.append(tokens);
}

std::vector<MatchedToken> predict(const Corpus& corpus, const Tokens& text, int n) {
    check_draft_length(n);
    const Match match = corpus.find(text);
    return copied(match, static_cast<int>(std::min<std::size_t>(n, match.continuation.size())));
}

}  // namespace

void bind_corpus(py::module_& m) {
    py::class_<CorpusBuilder>(m, "CorpusBuilder", "Gathers tokenized texts for a corpus file.")
        .def(py::init<std::int64_t>(), py::arg("max_tokens"))
        .def("append", &append, py::arg("tokens"))
        .def("end_text", &CorpusBuilder::end_text)
        .def("write", &CorpusBuilder::write, py::call_guard<py::gil_scoped_release>(),
             py::arg("path"), py::arg("n_vocab"), py::arg("vocabulary"))
        .def_property_readonly("full", &CorpusBuilder::full)
        .def_property_readonly("n_tokens", &CorpusBuilder::n_tokens)
        .def_property_readonly("n_texts", &CorpusBuilder::n_texts);
    py::class_<Corpus>(m, "Corpus", "A corpus file, to be drafted from.")
        .def(py::init<const std::string&>(), py::call_guard<py::gil_scoped_release>(),
             py::arg("path"))
        .def("predict", &predict, py::arg("text"), py::arg("n") = 4)
        .def_property_readonly("n_tokens", [](const Corpus& c) { return c.header().n_tokens; })
        .def_property_readonly("n_texts", [](const Corpus& c) { return c.header().n_texts; })
        .def_property_readonly("n_vocab", [](const Corpus& c) { return c.header().n_vocab; })
        .def_property_readonly("vocabulary", [](const Corpus& c) { return c.header().vocabulary; })
        .def_property_readonly("size_bytes", &Corpus::size_bytes);
}

}  // namespace specllama
