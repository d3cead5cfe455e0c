#include "draft/ngram/ngram_drafter.h"

namespace specllama {

NGramDrafter::NGramDrafter(const NGramOptions& options) : options_(options) {
    NGramFollower(options, {});  // throws the first request's errors already here
}

void NGramDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) {
    followers_.erase(sequence);
    followers_.try_emplace(sequence, options_, reference).first->second.follow(prompt);
}

void NGramDrafter::propose(std::span<DraftRequest> proposals) {
    for (DraftRequest& proposal : proposals) {
        NGramFollower& follower = followers_.at(proposal.sequence);
        follower.follow(proposal.tokens);
        follower.draft(proposal);
    }
}

void NGramDrafter::end(SequenceId sequence) { followers_.erase(sequence); }

}  // namespace specllama
