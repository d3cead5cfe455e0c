#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "draft/ngram/match_finder.h"
#include "draft/ngram/ngram_predictor.h"
#include "drafted_tokens.h"
#include "specllama/error.h"
#include "token_array.h"

namespace specllama {

namespace {

std::vector<NGramPredictor::Prediction> predicted(const NGramPredictor& predictor, int n) {
    check_draft_length(n);
    std::array<NGramPredictor::Prediction, kMaxSpecLength> out;
    const std::size_t found = predictor.predict(std::span(out).first(n));
    return {out.begin(), out.begin() + found};
}

void truncate(MatchFinder& finder, std::int64_t n) {
    const auto size = static_cast<std::int64_t>(finder.size());
    if (n < 0 || n > size)
        throw InvalidArgument("n must be from 0 to " + std::to_string(size) +
                              ", the number of tokens, not " + std::to_string(n) + ".");
    finder.truncate(static_cast<std::size_t>(n));
}

std::vector<MatchedToken> copied_tokens(const MatchFinder& finder, int n,
                                        const std::optional<Tokens>& text) {
    check_draft_length(n);
    const Match match = text ? finder.find(*text) : finder.find();
    if (text) n = static_cast<int>(std::min<std::size_t>(n, match.continuation.size()));
    return copied(match, n);
}

}  // namespace

void bind_ngram(py::module_& m) {
    py::class_<NGramPredictor::Prediction>(
        m, "Prediction",
        "A token predicted by n-grams, with their order and its relative frequency.")
        .def_readonly("token", &NGramPredictor::Prediction::token)
        .def_readonly("order", &NGramPredictor::Prediction::order)
        .def_readonly("frequency", &NGramPredictor::Prediction::frequency)
        .def_property_readonly("confidence", &NGramPredictor::Prediction::confidence)
        .def("__repr__", [](const NGramPredictor::Prediction& prediction) {
            return py::str("Prediction(token={}, order={}, frequency={:.3f})")
                .format(prediction.token, prediction.order, prediction.frequency);
        });
    const NGramOptions defaults;
    py::class_<NGramPredictor>(
        m, "NGramPredictor",
        "Predicts tokens from those that followed the same context before: frequency tables of\n"
        "every order from 2 to max_order, contexts hashed with 64-bit FNV-1a, the longest first.")
        .def(py::init([](int max_order, int window, std::size_t max_bytes) {
                 return NGramPredictor({max_order, window, max_bytes, false});
             }),
             py::kw_only(), py::arg("max_order") = defaults.max_order,
             py::arg("window") = defaults.window, py::arg("max_bytes") = defaults.max_bytes)
        .def(
            "update",
            [](NGramPredictor& predictor, Token token) {
                check_token(token);
                predictor.update(token);
            },
            py::arg("token"))
        .def(
            "update_batch",
            [](NGramPredictor& predictor, const Tokens& tokens) {
                for (const Token token : TokenSpan(tokens)) check_token(token);
                predictor.update_batch(tokens);
            },
            py::arg("tokens"))
        .def("predict", &predicted, py::arg("n") = 4)
        .def_property_readonly("size_bytes", &NGramPredictor::size_bytes)
        .def_property_readonly("capacity", &NGramPredictor::capacity);
}

void bind_match(py::module_& m) {
    py::class_<MatchedToken>(
        m, "MatchedToken",
        "A token copied from an earlier match, and the number of matching tokens before it.")
        .def_readonly("token", &MatchedToken::token)
        .def_readonly("length", &MatchedToken::length)
        .def("__repr__", [](const MatchedToken& matched) {
            return py::str("MatchedToken(token={}, length={})")
                .format(matched.token, matched.length);
        });
    py::class_<MatchFinder>(
        m, "MatchFinder",
        "Finds earlier occurrences of the last tokens of the text, or of another one: hash chains\n"
        "of the last 4 tokens; the longest match is chosen, then the most frequent next token.")
        .def(py::init<std::int64_t>(), py::kw_only(), py::arg("max_tokens") = 1 << 22)
        .def(
            "append",
            [](MatchFinder& finder, Token token) {
                check_token(token);
                finder.append(token);
            },
            py::arg("token"))
        .def(
            "append_batch",
            [](MatchFinder& finder, const Tokens& tokens) {
                for (const Token token : TokenSpan(tokens)) check_token(token);
                finder.append(tokens);
            },
            py::arg("tokens"))
        .def("truncate", &truncate, py::arg("n"))
        .def("predict", &copied_tokens, py::arg("n") = 4, py::arg("text") = py::none())
        .def("__len__", &MatchFinder::size)
        .def_property_readonly("size_bytes", &MatchFinder::size_bytes);
}

}  // namespace specllama
