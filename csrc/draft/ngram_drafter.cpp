#include "draft/ngram_drafter.h"

#include <algorithm>
#include <array>

#include "specllama/session.h"

namespace specllama {

namespace {

// As much as the bound of the tables holds.
std::int64_t max_match_tokens(const NGramOptions& options) {
    return static_cast<std::int64_t>(std::min<std::size_t>(
        options.max_bytes / MatchFinder::kBytesPerToken, MatchFinder::kMaxTokens));
}

}  // namespace

NGramDrafter::NGramDrafter(const NGramOptions& options) : options_(options) {
    Follower{options};  // throws now what would be thrown at the first request
}

NGramDrafter::Follower::Follower(const NGramOptions& options)
    : predictor(options), finder(max_match_tokens(options)) {}

void NGramDrafter::Follower::follow(TokenSpan tokens) {
    const TokenSpan fresh = tokens.subspan(finder.size());
    predictor.update_batch(fresh);
    finder.append(fresh);
}

void NGramDrafter::Follower::draft(Draft& draft, int max_tokens) {
    const std::size_t n_tokens = finder.size();
    Match match = finder.find();
    if (match.length == 0) {
        // Frequencies have the word until what they say makes a match that can be copied on: they
        // know short contexts only, and a long draft of theirs wanders off.
        std::array<NGramPredictor::Prediction, kMaxSpecLength> predictions;
        const auto n_most = std::min<std::size_t>(max_tokens, predictions.size());
        const std::size_t n = predictor.predict(std::span(predictions).first(n_most));
        for (std::size_t i = 0; i < n && match.length == 0; ++i) {
            const auto& [token, order, frequency] = predictions[i];
            draft.push(token, {Source::ngram, order, frequency});
            finder.append(token);
            match = finder.find();
        }
    }
    if (match.length > 0)
        for (int i = 0; draft.size() < max_tokens; ++i)
            draft.push(match.token(i), {Source::match, match.length + i});
    finder.truncate(n_tokens);
}

void NGramDrafter::begin(SequenceId sequence, TokenSpan prompt) {
    Follower follower(options_);
    follower.follow(prompt);
    followers_.insert_or_assign(sequence, std::move(follower));
}

void NGramDrafter::propose(std::span<Proposal> proposals) {
    for (Proposal& proposal : proposals) {
        Follower& follower = followers_.at(proposal.sequence);
        follower.follow(proposal.tokens);
        follower.draft(proposal.draft, proposal.max_tokens);
    }
}

void NGramDrafter::end(SequenceId sequence) { followers_.erase(sequence); }

std::shared_ptr<Drafter> make_ngram_drafter(const NGramOptions& options) {
    return std::make_shared<NGramDrafter>(options);
}

}  // namespace specllama
