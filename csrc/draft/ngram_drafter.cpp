#include "draft/ngram_drafter.h"

#include <algorithm>
#include <array>

#include "sample/sampler.h"
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
    if (options.draw) drawn_from.resize(kMaxSpecLength);
    predictor.update_batch(reference_tokens);
    reference.append(reference_tokens);
}

void NGramDrafter::Follower::follow(TokenSpan tokens) {
    const TokenSpan fresh = tokens.subspan(finder.size());
    predictor.update_batch(fresh);
    finder.append(fresh);
}

void NGramDrafter::Follower::draft(Proposal& proposal) {
    const std::size_t n_tokens = finder.size();
    finder.append(proposal.draft.tokens);
    extend(proposal);
    finder.truncate(n_tokens);
}

// Frequencies have the word until what they say makes a match that can be copied on: they know
// short contexts only, and a long draft of theirs wanders off.
void NGramDrafter::Follower::extend(Proposal& proposal) {
    Draft& draft = proposal.draft;
    const int max_tokens = proposal.max_tokens;
    if (copy(draft, max_tokens)) return;
    std::array<NGramPredictor::Prediction, kMaxSpecLength> predictions;
    const bool drawn = draws(proposal) && proposal.sampler->rejects();
    const auto n_most = std::min<std::size_t>(
        drawn ? proposal.max_drawn : max_tokens - draft.size(), predictions.size());
    const std::size_t n_predicted = predict(proposal, std::span(predictions).first(n_most));
    for (std::size_t i = 0; i < n_predicted; ++i) {
        const Token token = predictions[i].token;
        const int order = predictions[i].order;
        if (!drawn)
            draft.push(token, {Source::ngram, order, predictions[i].confidence()});
        else  // what is known of it must not tell which token was drawn
            draft.push(token, {Source::ngram, order, static_cast<float>(highest(drawn_from[i]))},
                       &drawn_from[i]);
        finder.append(token);
        if (copy(draft, max_tokens)) break;
    }
}

std::size_t NGramDrafter::Follower::predict(const Proposal& proposal,
                                            std::span<NGramPredictor::Prediction> predictions) {
    if (!draws(proposal)) return predictor.predict(predictions, proposal.draft.tokens);
    return predictor.draw(
        predictions, drawn_from, [&](std::size_t i, const Distribution& frequencies) {
            const std::size_t position = proposal.tokens.size() + i;
            return proposal.sampler->draft(frequencies, static_cast<Position>(position));
        });
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
        follower.draft(proposal);
    }
}

void NGramDrafter::end(SequenceId sequence) { followers_.erase(sequence); }

std::shared_ptr<Drafter> make_ngram_drafter(const NGramOptions& options) {
    return std::make_shared<NGramDrafter>(options);
}

}  // namespace specllama
