#include "draft/ngram_drafter.h"

#include <algorithm>
#include <array>

#include "specllama/session.h"

namespace specllama {

NGramDrafter::NGramDrafter(const NGramOptions& options) : options_(options) {
    NGramPredictor{options};  // throws now what would be thrown at the first request
}

void NGramDrafter::Follower::follow(TokenSpan tokens) {
    predictor.update_batch(tokens.subspan(n_seen));
    n_seen = tokens.size();
}

void NGramDrafter::begin(SequenceId sequence, TokenSpan prompt) {
    Follower follower{NGramPredictor(options_)};
    follower.follow(prompt);
    followers_.insert_or_assign(sequence, std::move(follower));
}

void NGramDrafter::propose(std::span<Proposal> proposals) {
    std::array<NGramPredictor::Prediction, kMaxSpecLength> predictions;
    for (Proposal& proposal : proposals) {
        Follower& follower = followers_.at(proposal.sequence);
        follower.follow(proposal.tokens);
        const auto n_most = std::min<std::size_t>(proposal.max_tokens, predictions.size());
        const std::size_t n = follower.predictor.predict(std::span(predictions).first(n_most));
        for (std::size_t i = 0; i < n; ++i)
            proposal.draft.push(predictions[i].token, predictions[i].frequency);
    }
}

void NGramDrafter::end(SequenceId sequence) { followers_.erase(sequence); }

std::shared_ptr<Drafter> make_ngram_drafter(const NGramOptions& options) {
    return std::make_shared<NGramDrafter>(options);
}

}  // namespace specllama
