#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "bind.h"
#include "draft/corpus/corpus.h"
#include "draft/corpus/corpus_builder.h"
#include "drafted_tokens.h"
#include "token_array.h"

namespace specllama {

namespace {

void append(CorpusBuilder& builder, const Tokens& tokens) {
    for (const Token token : TokenSpan(tokens)) check_token(token);
    builder.append(tokens);
}

// The path need not be the user's, so the caller turns the OSError into a message.
void write(CorpusBuilder& builder, const std::string& path, int n_vocab, std::uint64_t vocabulary) {
    try {
        const py::gil_scoped_release release;
        builder.write(path, n_vocab, vocabulary);
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
        throw py::error_already_set();
    }
}

std::vector<MatchedToken> predict(const Corpus& corpus, const Tokens& text, int n) {
    check_draft_length(n);
    const Match match = corpus.find(text);
    return copied(match, static_cast<int>(std::min<std::size_t>(n, match.continuation.size())));
}

}  // namespace

void bind_corpus(py::module_& m) {
    py::class_<CorpusBuilder>(m, "CorpusBuilder", "Collects tokenized texts for a corpus file.")
        .def(py::init<std::int64_t>(), py::arg("max_tokens"))
        .def("append", &append, py::arg("tokens"))
        .def("end_text", &CorpusBuilder::end_text)
        .def("write", &write, py::arg("path"), py::arg("n_vocab"), py::arg("vocabulary"))
        .def_property_readonly("full", &CorpusBuilder::full)
        .def_property_readonly("n_tokens", &CorpusBuilder::n_tokens)
        .def_property_readonly("n_texts", &CorpusBuilder::n_texts);
    py::class_<Corpus>(m, "Corpus", "A corpus file to draft from.")
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
