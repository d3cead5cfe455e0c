#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bind.h"
#include "draft/history/history.h"
#include "draft/history/history_drafter.h"
#include "drafted_tokens.h"
#include "token_array.h"

namespace specllama {

namespace {

void append(History& history, const Tokens& tokens, int owner) {
    for (const Token token : TokenSpan(tokens)) check_token(token);
    history.append(owner, tokens);
}

std::vector<MatchedToken> predict(const History& history, const Tokens& text, int n, int owner) {
    check_draft_length(n);
    const Match match = history.find(owner, text).match;
    return copied(match, static_cast<int>(std::min<std::size_t>(n, match.continuation.size())));
}

// A sequence and its drafter.
class FollowedInHistory {
 public:
    FollowedInHistory(std::shared_ptr<const History> history, const Tokens& prompt, int owner)
        : drafter_(std::move(history)), owner_(owner) {
        append(prompt);
        drafter_.begin(0, tokens_, {});
    }

    void append(const Tokens& tokens) {
        const TokenSpan added = tokens;
        for (const Token token : added) check_token(token);
        tokens_.insert(tokens_.end(), added.begin(), added.end());
    }

    std::vector<std::pair<Token, Evidence>> draft(int n) {
        check_draft_length(n);
        DraftRequest request;
        request.tokens = tokens_;
        request.max_tokens = n;
        request.memory_owner = owner_;
        drafter_.propose({&request, 1});
        std::vector<std::pair<Token, Evidence>> drafted;
        drafted.reserve(static_cast<std::size_t>(request.draft.size()));
        for (int i = 0; i < request.draft.size(); ++i)
            drafted.emplace_back(request.draft.tokens[i], request.draft.evidence[i]);
        return drafted;
    }

 private:
    HistoryDrafter drafter_;
    int owner_;
    std::vector<Token> tokens_;
};

}  // namespace

void bind_history_follower(py::module_& m) {
    py::class_<FollowedInHistory>(m, "HistoryFollower",
                                  "Drafts for one sequence from earlier requests.")
        .def(py::init<std::shared_ptr<History>, const Tokens&, int>(), py::arg("history"),
             py::arg("prompt"), py::kw_only(), py::arg("owner") = 0)
        .def("append_batch", &FollowedInHistory::append, py::arg("tokens"))
        .def("draft", &FollowedInHistory::draft, py::arg("n") = 4);
}

void bind_history(py::module_& m) {
    py::class_<History, std::shared_ptr<History>>(m, "History",
                                                  "The latest texts of each owner, to draft from.")
        .def(py::init<std::int64_t>(), py::arg("max_tokens"))
        .def("append", &append, py::arg("tokens"), py::kw_only(), py::arg("owner") = 0)
        .def("predict", &predict, py::arg("text"), py::arg("n") = 4, py::kw_only(),
             py::arg("owner") = 0)
        .def(
            "texts",
            [](const History& history, int owner) {
                std::vector<std::vector<Token>> all;
                history.each_text(
                    owner, [&](TokenSpan text) { all.emplace_back(text.begin(), text.end()); });
                return all;
            },
            py::kw_only(), py::arg("owner") = 0)
        .def_property_readonly("n_tokens", &History::n_tokens)
        .def_property_readonly("size_bytes", &History::size_bytes);
}

}  // namespace specllama
