#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.h"
#include "draft/ngram/ngram_follower.h"
#include "draft/tree.h"
#include "drafted_tokens.h"
#include "specllama/error.h"
#include "token_array.h"

namespace specllama {

namespace {

// A sequence and the follower that drafts for it.
class Followed {
 public:
    explicit Followed(TokenSpan reference) : follower_({}, checked(reference)) {}

    void append(TokenSpan tokens) {
        checked(tokens);
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    }

    std::vector<std::pair<Token, Evidence>> draft(int n) {
        const SampledDraft draft = proposed(n, 0);
        std::vector<std::pair<Token, Evidence>> drafted;
        drafted.reserve(draft.size());
        for (int i = 0; i < draft.size(); ++i)
            drafted.emplace_back(draft.tokens[i], draft.evidence[i]);
        return drafted;
    }

    // For each node: its token, its evidence, and its parent (-1: the sequence's last token).
    std::vector<std::tuple<Token, Evidence, int>> tree(int n, int max_alternatives) {
        if (max_alternatives < 0 || max_alternatives >= kMaxTreeWidth)
            throw InvalidArgument("max_alternatives must be from 0 to " +
                                  std::to_string(kMaxTreeWidth - 1) + ", not " +
                                  std::to_string(max_alternatives) + ".");
        Tree tree;
        tree.add(proposed(n, max_alternatives),
                 {.nodes = kMostNodes, .leaves = kMostNodes, .siblings = 1 + max_alternatives});
        std::vector<std::tuple<Token, Evidence, int>> nodes;
        for (const Tree::Node& node : tree.nodes())
            nodes.emplace_back(node.token, node.evidence, node.parent);
        return nodes;
    }

 private:
    static constexpr int kMostNodes = 1000;  // more than possible

    SampledDraft proposed(int n, int max_alternatives) {
        check_draft_length(n);
        DraftRequest proposal;
        proposal.tokens = tokens_;
        proposal.max_tokens = n;
        proposal.max_alternatives = max_alternatives;
        follower_.follow(tokens_);
        follower_.draft(proposal);
        return proposal.draft;
    }

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
                         "Drafts for one sequence like a session's n-gram drafter.")
        .def(py::init<const Tokens&>(), py::kw_only(), py::arg("reference") = py::tuple())
        .def(
            "append", [](Followed& followed, Token token) { followed.append({&token, 1}); },
            py::arg("token"))
        .def(
            "append_batch",
            [](Followed& followed, const Tokens& tokens) { followed.append(tokens); },
            py::arg("tokens"))
        .def("draft", &Followed::draft, py::arg("n") = 4)
        .def("tree", &Followed::tree, py::arg("n") = 4, py::arg("max_alternatives") = 1);
}

}  // namespace specllama
