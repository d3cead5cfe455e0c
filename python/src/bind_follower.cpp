#include <utility>
#include <vector>

#include "bind.h"
#include "draft/ngram_follower.h"
#include "token_arguments.h"
#include "token_array.h"

namespace specllama {

namespace {

// A sequence and what follows it.
class Followed {
 public:
    explicit Followed(TokenSpan reference) : follower_({}, checked(reference)) {}

    void append(TokenSpan tokens) {
        checked(tokens);
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    }

    std::vector<std::pair<Token, Evidence>> draft(int n) {
        check_draft_length(n);
        Proposal proposal;
        proposal.tokens = tokens_;
        proposal.max_tokens = n;
        follower_.follow(tokens_);
        follower_.draft(proposal);
        std::vector<std::pair<Token, Evidence>> drafted;
        for (int i = 0; i < proposal.draft.size(); ++i)
            drafted.emplace_back(proposal.draft.tokens[i], proposal.draft.evidence[i]);
        return drafted;
    }

 private:
    static TokenSpan checked(TokenSpan tokens) {
        for (const Token token : tokens) check_token(token);
        return tokens;
    }

    NGramFollower follower_;
    std::vector<Token> tokens_;
};

}  // namespace

void bind_follower(py::module_& m) {
    py::class_<Followed>(m, "NGramFollower",
                         "Drafts for one sequence as a session's n-gram drafter does.")
        .def(py::init<const Tokens&>(), py::kw_only(), py::arg("reference") = py::tuple())
        .def(
            "append", [](Followed& followed, Token token) { followed.append({&token, 1}); },
            py::arg("token"))
        .def(
            "append_batch",
            [](Followed& followed, const Tokens& tokens) { followed.append(tokens); },
            py::arg("tokens"))
        .def("draft", &Followed::draft, py::arg("n") = 4);
}

}  // namespace specllama
