#include "draft/ngram_follower.h"

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

// Matches do not run across the end of the reference: it has a finder of its own. The few n-grams
// that do are no harm.
NGramFollower::NGramFollower(const NGramOptions& options, TokenSpan reference)
    : predictor_(options), own_(max_match_tokens(options)), reference_(max_match_tokens(options)) {
    if (options.draw) drawn_from_.resize(kMaxSpecLength);
    predictor_.update_batch(reference);
    reference_.append(reference);
}

void NGramFollower::follow(TokenSpan tokens) {
    for (const Token token : tokens.subspan(own_.size())) step(token);
}

void NGramFollower::step(Token token) {
    const bool copies = trail_.match().length > 0;
    const bool copied = trail_.step(token);
    predictor_.update(token);
    own_.append(token);
    broke_off_.push_back(copies && !copied);
    if (!copied) enter_best();
}

void NGramFollower::draft(Proposal& proposal) {
    const std::size_t n_tokens = own_.size();
    own_.append(proposal.draft.tokens);
    extend(proposal);
    own_.truncate(n_tokens);
}

// Frequencies have the word until what they say makes a match that can be copied on: they know
// short contexts only, and a long draft of theirs wanders off.
void NGramFollower::extend(Proposal& proposal) {
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
            draft.push(token, {Source::ngram, order, static_cast<float>(highest(drawn_from_[i]))},
                       &drawn_from_[i]);
        own_.append(token);
        if (copy(draft, max_tokens)) break;
    }
}

std::size_t NGramFollower::predict(const Proposal& proposal,
                                   std::span<NGramPredictor::Prediction> predictions) {
    if (!draws(proposal)) return predictor_.predict(predictions, proposal.draft.tokens);
    return predictor_.draw(
        predictions, drawn_from_, [&](std::size_t i, const Distribution& frequencies) {
            const std::size_t position = proposal.tokens.size() + i;
            return proposal.sampler->draft(frequencies, static_cast<Position>(position));
        });
}

NGramFollower::Found NGramFollower::find() const {
    const TokenSpan sequence = own_.tokens();
    const Match own = own_.find();
    const Match other = reference_.find(sequence);
    return other.length > own.length ? Found{&reference_, other} : Found{&own_, own};
}

// Looks for a place to copy from. Not asked for while a copy goes on: a match that was the longest
// grows as fast as any other.
void NGramFollower::enter_best() {
    Found found = find();
    const Match near = trail_.near(own_.tokens());
    // Of matches too short for the finders, n-grams know the longest, as far as they remember.
    if (near.length > 0 && near.length >= std::max(found.match.length, predictor_.n_known()))
        found = {trail_.text(), near};
    if (found.match.length > 0) trail_.enter(*found.text, found.match);
}

// Fills the draft up with what followed the longest match, if there is one.
bool NGramFollower::copy(Draft& draft, int max_tokens) const {
    const auto [text, match] = draft.empty() ? Found{trail_.text(), trail_.match()} : find();
    if (match.length == 0) return false;
    std::size_t n = max_tokens - draft.size();
    // The sequence goes on, and a copy of it with it; the reference ends.
    if (text == &reference_) n = std::min(n, match.continuation.size());
    const std::size_t place = text->size() - match.continuation.size();
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = place + i % match.continuation.size();
        const bool broke_off = text == &own_ && at < broke_off_.size() && broke_off_[at];
        draft.push(match.token(i),
                   {Source::match, match.length + static_cast<int>(i), broke_off ? 0.0F : 1.0F});
    }
    return true;
}

}  // namespace specllama
