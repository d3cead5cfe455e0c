#include "draft/corpus/corpus_drafter.h"

#include <algorithm>

namespace specllama {

CorpusDrafter::CorpusDrafter(const std::string& path, std::uint64_t vocabulary) : corpus_(path) {
    corpus_.check_vocabulary(path, vocabulary);
}

void CorpusDrafter::propose(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        const int n_most = proposal.max_tokens - proposal.draft.size();
        if (n_most == 0) continue;
        const Match match = corpus_.find(proposal.with_draft(text_));
        const int n = std::min(n_most, static_cast<int>(match.continuation.size()));
        for (int i = 0; i < n; ++i)
            proposal.draft.push(match.token(i), {Source::corpus, match.length + i});
    }
}

}  // namespace specllama
