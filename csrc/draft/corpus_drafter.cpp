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
        if (proposal.max_tokens == 0) continue;
        const Match match = corpus_.find(proposal.tokens);
        const int n = std::min(proposal.max_tokens, static_cast<int>(match.continuation.size()));
        for (int i = 0; i < n; ++i)
            proposal.draft.push(match.token(i), {Source::corpus, match.length + i});
    }
}

}  // namespace specllama
