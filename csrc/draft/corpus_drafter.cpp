#include "draft/corpus_drafter.h"

#include <algorithm>

#include "specllama/error.h"

namespace specllama {

CorpusDrafter::CorpusDrafter(const std::string& path, std::uint64_t vocabulary) : corpus_(path) {
    if (corpus_.header().vocabulary != vocabulary)
        throw InvalidArgument(path +
                              " cannot be drafted from: it was built for another vocabulary than "
                              "this model's; build one with this model.");
}

void CorpusDrafter::propose(std::span<Proposal> proposals) {
    for (Proposal& proposal : proposals) {
        if (proposal.draft.size() >= proposal.max_tokens) continue;
        TokenSpan text = proposal.tokens;
        if (!proposal.draft.empty()) {
            text_.assign(text.begin(), text.end());
            text_.insert(text_.end(), proposal.draft.tokens.begin(), proposal.draft.tokens.end());
            text = text_;
        }
        const Match match = corpus_.find(text);
        const int n = std::min(proposal.max_tokens - proposal.draft.size(),
                               static_cast<int>(match.continuation.size()));
        for (int i = 0; i < n; ++i)
            proposal.draft.push(match.token(i), {Source::corpus, match.length + i});
    }
}

}  // namespace specllama
