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
    if (copy(proposal)) return;
    std::array<NGramPredictor::Prediction, kMaxSpecLength> predictions;
    std::array<NGramPredictor::Prediction, kMaxSpecLength> rivals;
    const bool drawn = draws(proposal) && proposal.sampler->rejects();
    const auto n_most = std::min<std::size_t>(
        drawn ? proposal.max_drawn : proposal.max_tokens - draft.size(), predictions.size());
    const bool branches = proposal.max_beside > 0 && !draws(proposal);
    const std::size_t n_predicted = predict(proposal, std::span(predictions).first(n_most),
                                            std::span(rivals).first(branches ? n_most : 0));
    for (std::size_t i = 0; i < n_predicted; ++i) {
        const Token token = predictions[i].token;
        const int order = predictions[i].order;
        if (branches && rivals[i].token != kNoToken)
            draft.push_side(draft.size(), rivals[i].token,
                            {Source::ngram, order, rivals[i].confidence()});
        if (!drawn)
            draft.push(token, {Source::ngram, order, predictions[i].confidence()});
        else  // what is known of it must not tell which token was drawn
            draft.push(token, {Source::ngram, order, static_cast<float>(highest(drawn_from_[i]))},
                       &drawn_from_[i]);
        own_.append(token);
        if (copy(proposal)) break;
    }
}

std::size_t NGramFollower::predict(const Proposal& proposal,
                                   std::span<NGramPredictor::Prediction> predictions,
                                   std::span<NGramPredictor::Prediction> rivals) {
    if (!draws(proposal)) return predictor_.predict(predictions, proposal.draft.tokens, rivals);
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

// The sequence goes on, and a copy of it with it; the reference ends.
std::size_t NGramFollower::n_copied(const Found& found, std::size_t n) const {
    return found.text == &reference_ ? std::min(n, found.match.continuation.size()) : n;
}

Evidence NGramFollower::evidence(const Found& found, std::size_t i) const {
    const auto& [text, match] = found;
    const std::size_t n = match.continuation.size();
    const std::size_t at = text->size() - n + i % n;
    const bool broke_off = text == &own_ && at < broke_off_.size() && broke_off_[at];
    return {Source::match, match.length + static_cast<int>(i), broke_off ? 0.0F : 1.0F};
}

// Fills the draft up with what followed the longest match, if there is one.
bool NGramFollower::copy(Proposal& proposal) const {
    Draft& draft = proposal.draft;
    const Found found = draft.empty() ? Found{trail_.text(), trail_.match()} : find();
    if (found.match.length == 0) return false;
    const int first = draft.size();
    const std::size_t n = n_copied(found, proposal.max_tokens - first);
    for (std::size_t i = 0; i < n; ++i) draft.push(found.match.token(i), evidence(found, i));
    // Beside what was drawn nothing may depend on it.
    if (proposal.max_beside > 0 && !draft.drawn()) add_rivals(proposal, first);
    return true;
}

// The other matches, grouped by where they leave the copy, which is token `first` and those behind
// it, and by what they say there.
void NGramFollower::add_rivals(Proposal& proposal, int first) const {
    Draft& draft = proposal.draft;
    std::array<Match, MatchFinder::kMaxCandidates> own;
    std::array<Match, MatchFinder::kMaxCandidates> other;
    const std::size_t n_own = own_.find_all(own_.tokens(), own);
    const std::size_t n_other = reference_.find_all(own_.tokens(), other);
    struct Place {
        int depth;
        Token token;
    };
    std::array<Place, kMaxRivals> places;
    std::size_t n_places = 0;
    const TokenSpan copied = TokenSpan(draft.tokens).subspan(first);
    for (std::size_t i = 0, j = 0; (i < n_own || j < n_other) && n_places < kMaxRivals;) {
        const bool is_own = j == n_other || (i < n_own && own[i].length >= other[j].length);
        const Found found = is_own ? Found{&own_, own[i++]} : Found{&reference_, other[j++]};
        const std::size_t n_most = n_copied(found, copied.size());
        std::size_t at = 0;
        while (at < n_most && found.match.token(at) == copied[at]) ++at;
        if (at == n_most) continue;
        const Place place{first + static_cast<int>(at), found.match.token(at)};
        const auto there = std::span(places).first(n_places);
        const auto n_there = std::ranges::count(there, place.depth, &Place::depth);
        const bool said = std::ranges::any_of(there, [&](const Place& one) {
            return one.depth == place.depth && one.token == place.token;
        });
        if (said || n_there == proposal.max_beside) continue;
        places[n_places++] = place;
        draft.push_side(place.depth, place.token, evidence(found, at));
        for (++at; at < n_most && at < place.depth - first + kRivalTokens; ++at)
            draft.push_behind_side(found.match.token(at), evidence(found, at));
    }
}

}  // namespace specllama
