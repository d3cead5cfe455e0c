#include "draft/corpus/corpus_drafter.h"

#include <algorithm>

#include "specllama/error.h"

namespace specllama {

CorpusDrafter::CorpusDrafter(const std::string& path, std::uint64_t vocabulary) : corpus_(path) {
    if (corpus_.header().vocabulary != vocabulary)
        throw InvalidArgument(path +
                              " cannot be drafted from: it was built for another vocabulary than "
                              "this model's; build one with this model.");
}

void CorpusDrafter::propose(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        const int n_most = proposal.max_tokens - proposal.draft.size();
        if (n_most == 0) continue;
        const Match match = corpus_.find(with_draft(proposal));
        const int n = std::min(n_most, static_cast<int>(match.continuation.size()));
        for (int i = 0; i < n; ++i)
            proposal.draft.push(match.token(i), {Source::corpus, match.length + i});
    }
}

// The sequence's tokens with those of the draft after them. With a draft, only the last kMaxMatch
// tokens of the sequence are included: no match is longer.
TokenSpan CorpusDrafter::with_draft(const DraftRequest& proposal) {
    if (proposal.draft.empty()) return proposal.tokens;
    const auto n_last = std::min<std::size_t>(proposal.tokens.size(), kMaxMatch);
    const TokenSpan last = proposal.tokens.last(n_last);
    text_.assign(last.begin(), last.end());
    text_.insert(text_.end(), proposal.draft.tokens.begin(), proposal.draft.tokens.end());
    return text_;
}

}  // namespace specllama
