#include "engine/proposal_check.h"

#include <algorithm>
#include <utility>

namespace specllama {

namespace {

// Maximum number of tokens in a row, along the main path or a branch.
int longest(const SampledDraft& draft) {
    int n_most = draft.size();
    int n = 0;
    for (const Draft::BranchToken& side : draft.branches) {
        n = side.follows ? n + 1 : side.depth + 1;
        n_most = std::max(n_most, n);
    }
    return n_most;
}

std::string no_token(Token token, const Vocabulary& vocab) {
    return "The drafter proposed token " + std::to_string(token) + "; the model has " +
           std::to_string(vocab.size()) + " tokens.";
}

}  // namespace

std::string fault(const DraftRequest& proposal, const Vocabulary& vocab) {
    if (!proposal.error.empty()) return proposal.error;
    if (!proposal.draft.valid())
        return "The drafter proposed tokens without evidence or with an invalid source; add tokens "
               "by Draft::push.";
    if (const int n = longest(proposal.draft); n > proposal.max_tokens)
        return "The drafter proposed " + std::to_string(n) + " tokens; at most " +
               std::to_string(proposal.max_tokens) + " were requested.";
    if (proposal.draft.drawn() && proposal.draft.size() > proposal.max_drawn)
        return "The drafter drew a draft of " + std::to_string(proposal.draft.size()) +
               " tokens; at most " + std::to_string(proposal.max_drawn) + " were requested.";
    for (const Token token : proposal.draft.tokens)
        if (!vocab.contains(token)) return no_token(token, vocab);
    for (const Draft::BranchToken& side : proposal.draft.branches)
        if (!vocab.contains(side.token)) return no_token(side.token, vocab);
    return "";
}

void cut_after_end(SampledDraft& draft, const Vocabulary& vocab) {
    const auto ends = [&](Token token) { return vocab.is_end(token); };
    if (draft.drawn()) return;
    const auto end = std::ranges::find_if(draft.tokens, ends);
    if (end != draft.tokens.end()) draft.truncate(static_cast<int>(end - draft.tokens.begin()) + 1);
    bool over = false;  // whether the branch has ended
    draft.erase_branches([&](const Draft::BranchToken& side) {
        over &= side.follows;
        return std::exchange(over, over || ends(side.token));
    });
}

void cut_where_forbidden(SampledDraft& draft, const Sampler& sampler) {
    if (sampler.mask() == nullptr || draft.empty() || draft.drawn()) return;
    const auto n = static_cast<int>(sampler.mask()->n_allowed(draft.tokens));
    if (n < draft.size()) draft.truncate(n);
}

void record_error(Sequence& sequence, const std::string& message) {
    ++sequence.stats.drafter_errors;
    sequence.stats.last_drafter_error = message;
}

}  // namespace specllama
