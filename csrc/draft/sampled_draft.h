#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sample/distribution.h"
#include "specllama/draft.h"

namespace specllama {

// A draft whose tokens may be drawn from distributions, which verification needs. The drafter keeps
// a distribution until its next proposal.
struct SampledDraft : Draft {
    // [i]: distribution that tokens[i], or branches[i], was drawn from; null: not drawn.
    std::vector<const Distribution*> drawn_from;
    std::vector<const Distribution*> branch_drawn_from;

    // Whether a token of the main path was drawn from a distribution.
    bool drawn() const {
        return std::ranges::any_of(drawn_from, [](const Distribution* from) { return from; });
    }

    void clear() {
        Draft::clear();
        drawn_from.clear();
        branch_drawn_from.clear();
    }

    // Copies a draft without drawn tokens.
    void assign(const Draft& draft) {
        Draft::operator=(draft);
        drawn_from.assign(tokens.size(), nullptr);
        branch_drawn_from.assign(branches.size(), nullptr);
    }

    // Removes the branch tokens for which `erased` returns true.
    template <typename Predicate>
    void erase_branches(Predicate erased) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < branches.size(); ++i) {
            if (erased(branches[i])) continue;
            branches[n] = branches[i];
            branch_drawn_from[n++] = branch_drawn_from[i];
        }
        branches.resize(n);
        branch_drawn_from.resize(n);
    }

    // Shortens the main path to its first n tokens (at most size()), and removes the branches that
    // leave it after n tokens or later.
    void truncate(int n) {
        erase_branches([n](const BranchToken& one) { return one.depth >= n; });
        tokens.resize(n);
        evidence.resize(n);
        drawn_from.resize(n);
    }

    void push(Token token, const Evidence& why, const Distribution* from = nullptr) {
        Draft::push(token, why);
        drawn_from.push_back(from);
    }
    void push_branch(int depth, Token token, const Evidence& why,
                     const Distribution* from = nullptr) {
        Draft::push_branch(depth, token, why);
        branch_drawn_from.push_back(from);
    }
    void extend_branch(Token token, const Evidence& why) {
        Draft::extend_branch(token, why);
        branch_drawn_from.push_back(nullptr);
    }
};

// If `other` begins with the tokens of `draft`, adds its remaining tokens to `draft`, up to `most`
// tokens in total. Returns how many were added; 0 if either draft was drawn, since the length would
// then depend on the drawn tokens.
int add_rest(SampledDraft& draft, const SampledDraft& other, int most);

// If `other` was copied from the request's own text by a match at least as long as that of `draft`,
// their common beginning comes from the request's text. Then `draft` takes over its evidence.
// Returns the number of common tokens.
int share_evidence(SampledDraft& draft, const SampledDraft& other);

}  // namespace specllama
