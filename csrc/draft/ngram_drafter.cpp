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
    Follower(options, {});  // throws now what would be thrown at the first request
}

// Matches do not run across the end of the reference: it has a finder of its own. The few n-grams
// that do are no harm.
NGramDrafter::Follower::Follower(const NGramOptions& options, TokenSpan reference_tokens)
    : predictor(options), finder(max_match_tokens(options)), reference(max_match_tokens(options)) {
    predictor.update_batch(reference_tokens);
    reference.append(reference_tokens);
}

void NGramDrafter::Follower::follow(TokenSpan tokens) {
    const TokenSpan fresh = tokens.subspan(finder.size());
    predictor.update_batch(fresh);
    finder.append(fresh);
}

// Frequencies have the word until what they say makes a match that can be copied on: they know
// short contexts only, and a long draft of theirs wanders off.
void NGramDrafter::Follower::draft(Draft& draft, int max_tokens) {
    if (copy(draft, max_tokens)) return;
    std::array<NGramPredictor::Prediction, kMaxSpecLength> predictions;
    const auto n_most = std::min<std::size_t>(max_tokens, predictions.size());
    const std::size_t n_predicted = predictor.predict(std::span(predictions).first(n_most));
    const std::size_t n_tokens = finder.size();
    for (std::size_t i = 0; i < n_predicted; ++i) {
        const auto& [token, order, frequency] = predictions[i];
        draft.push(token, {Source::ngram, order, frequency});
        finder.append(token);
        if (copy(draft, max_tokens)) break;
    }
    finder.truncate(n_tokens);
}

// Fills the draft up with what followed the longest match, if there is one.
bool NGramDrafter::Follower::copy(Draft& draft, int max_tokens) const {
    const Match own = finder.find();
    const Match other = reference.find(finder.tokens());
    const bool is_own = own.length >= other.length;
    const Match& match = is_own ? own : other;
    std::size_t n = max_tokens - draft.size();
    // The sequence goes on, and a copy of it with it; the reference ends.
    if (!is_own) n = std::min(n, other.continuation.size());
    for (std::size_t i = 0; i < n && match.length > 0; ++i)
        draft.push(match.token(i), {Source::match, match.length + static_cast<int>(i)});
    return match.length > 0;
}

void NGramDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) {
    Follower follower(options_, reference);
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
