#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "draft/ngram/match_finder.h"
#include "matched_token.h"
#include "specllama/error.h"
#include "token_arguments.h"
#include "token_array.h"

namespace specllama {

namespace {

void truncate(MatchFinder& finder, std::int64_t n) {
    const auto size = static_cast<std::int64_t>(finder.size());
    if (n < 0 || n > size)
        throw InvalidArgument("n must be from 0 to " + std::to_string(size) +
                              ", the tokens taken in, not " + std::to_string(n) + ".");
    finder.truncate(static_cast<std::size_t>(n));
}

std::vector<MatchedToken> predict(const MatchFinder& finder, int n,
                                  const std::optional<Tokens>& text) {
    check_draft_length(n);
    const Match match = text ? finder.find(*text) : finder.find();
    if (text) n = static_cast<int>(std::min<std::size_t>(n, match.continuation.size()));
    return copied(match, n);
}

}  // namespace

void bind_match(py::module_& m) {
    py::class_<MatchedToken>(
        m, "MatchedToken",
        "A token copied from where the same tokens stood before it, and how many those were.")
        .def_readonly("token", &MatchedToken::token)
        .def_readonly("length", &MatchedToken::length)
        .def("__repr__", [](const MatchedToken& matched) {
            return py::str("MatchedToken(token={}, length={})")
                .format(matched.token, matched.length);
        });
    py::class_<MatchFinder>(
        m, "MatchFinder",
        "Finds where in a text the tokens stand that it, or another text, ends with: hash chains\n"
        "of the last 4 tokens; the longest match wins, then the most frequent next token.")
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
        .def("predict", &predict, py::arg("n") = 4, py::arg("text") = py::none())
        .def("__len__", &MatchFinder::size)
        .def_property_readonly("size_bytes", &MatchFinder::size_bytes);
}

}  // namespace specllama
