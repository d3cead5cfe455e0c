#include "draft/ngram/ngram_follower.h"

#include <algorithm>
#include <array>

#include "sample/sampler.h"

namespace specllama {

namespace {

// The number of tokens that fit into the bound of the tables.
std::int64_t max_match_tokens(const NGramOptions& options) {
    return static_cast<std::int64_t>(std::min<std::size_t>(
        options.max_bytes / MatchFinder::kBytesPerToken, MatchFinder::kMaxTokens));
}

}  // namespace

// The reference has a separate finder, so no match crosses its end. The few n-grams that cross it
// do no harm.
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
    const bool copies = cursor_.match().length > 0;
    const bool copied = cursor_.step(token);
    predictor_.update(token);
    own_.append(token);
    broke_off_.push_back(copies && !copied);
    if (!copied) start_best_copy();
}

void NGramFollower::draft(DraftRequest& proposal) {
    // The draft is removed from own_ at the end, also after an exception.
    const struct Ahead {
        MatchFinder& text;
        std::size_t n_tokens;
        ~Ahead() { text.truncate(n_tokens); }
    } ahead{own_, own_.size()};
    own_.append(proposal.draft.tokens);
    extend(proposal);
}

// Frequencies are used only until the drafted tokens make a match to copy from: frequencies use
// only short contexts, so a long draft from them drifts off.
void NGramFollower::extend(DraftRequest& proposal) {
    if (copy(proposal, proposal.max_tokens)) return;
    const bool drawn = draws(proposal) && proposal.sampler->rejects();
    const int n_most =
        drawn ? std::min(proposal.max_drawn, proposal.max_tokens) : proposal.max_tokens;
    while (proposal.draft.size() < n_most && predict(proposal) && !copy(proposal, n_most)) {
    }
}

// Adds the next token by its frequency; returns false if no context is known.
bool NGramFollower::predict(DraftRequest& proposal) {
    SampledDraft& draft = proposal.draft;
    NGramPredictor::Prediction one;
    if (draws(proposal)) {
        Distribution& drawn_from = drawn_from_[draft.size()];
        one = predictor_.draw(draft.tokens, drawn_from, [&](const Distribution& frequencies) {
            const std::size_t position = proposal.tokens.size() + draft.size();
            return proposal.sampler->draft(frequencies, static_cast<Position>(position));
        });
        if (one.token == kNoToken) return false;
        if (proposal.sampler->rejects())  // evidence must not depend on the drawn token
            draft.push(one.token,
                       {Source::ngram, one.order, static_cast<float>(highest(drawn_from))},
                       &drawn_from);
        else
            draft.push(one.token, {Source::ngram, one.order, one.confidence()});
    } else {
        NGramPredictor::Prediction alternative;
        one = predictor_.next(draft.tokens, proposal.max_alternatives > 0 ? &alternative : nullptr);
        if (one.token == kNoToken) return false;
        if (alternative.token != kNoToken)
            draft.push_branch(draft.size(), alternative.token,
                              {Source::ngram, one.order, alternative.confidence()});
        draft.push(one.token, {Source::ngram, one.order, one.confidence()});
    }
    own_.append(one.token);
    return true;
}

NGramFollower::Found NGramFollower::find() const {
    const TokenSpan sequence = own_.tokens();
    const Match own = own_.find();
    const Match other = reference_.find(sequence);
    return other.length > own.length ? Found{&reference_, other} : Found{&own_, own};
}

// Finds a place to copy from. Not called while a copy continues: its match was the longest, and no
// other can grow faster.
void NGramFollower::start_best_copy() {
    const Found found = find();
    // For contexts too short for the finders, the n-gram tables give the longest one known.
    const int least = std::max(found.match.length, predictor_.n_known());
    if (cursor_.resume_near(own_.tokens(), least) || found.match.length == 0) return;
    const std::size_t place = found.text->size() - found.match.continuation.size();
    cursor_.start(*found.text, place, found.match.length);
}

// A copy from the sequence never ends, since it continues with its own tokens. A copy from the
// reference does.
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

// Fills the draft with the continuation of the longest match, up to n_most tokens. Returns whether
// there is a match.
bool NGramFollower::copy(DraftRequest& proposal, int n_most) const {
    SampledDraft& draft = proposal.draft;
    const Found found = draft.empty() ? Found{cursor_.text(), cursor_.match()} : find();
    if (found.match.length == 0) return false;
    const int first = draft.size();
    const std::size_t n = n_copied(found, n_most - first);
    for (std::size_t i = 0; i < n; ++i) draft.push(found.match.token(i), evidence(found, i));
    // No alternatives to drawn tokens: they would depend on the drawn tokens.
    if (proposal.max_alternatives > 0 && !draft.drawn()) add_alternatives(proposal, first);
    return true;
}

// Adds the other matches as branches, one for each position and token at which they leave the copy.
// The copy is the draft from token `first` on.
void NGramFollower::add_alternatives(DraftRequest& proposal, int first) const {
    SampledDraft& draft = proposal.draft;
    std::array<Match, MatchFinder::kMaxCandidates> own;
    std::array<Match, MatchFinder::kMaxCandidates> other;
    const std::size_t n_own = own_.find_all(own_.tokens(), own);
    const std::size_t n_other = reference_.find_all(own_.tokens(), other);
    struct Fork {
        int depth;
        Token token;
    };
    std::array<Fork, kMaxAlternatives> forks;
    std::size_t n_forks = 0;
    const TokenSpan copied = TokenSpan(draft.tokens).subspan(first);
    for (std::size_t i = 0, j = 0; (i < n_own || j < n_other) && n_forks < kMaxAlternatives;) {
        const bool is_own = j == n_other || (i < n_own && own[i].length >= other[j].length);
        const Found found = is_own ? Found{&own_, own[i++]} : Found{&reference_, other[j++]};
        const std::size_t n_most = n_copied(found, copied.size());
        std::size_t at = 0;
        while (at < n_most && found.match.token(at) == copied[at]) ++at;
        if (at == n_most) continue;
        const Fork fork{first + static_cast<int>(at), found.match.token(at)};
        const auto there = std::span(forks).first(n_forks);
        const auto n_there = std::ranges::count(there, fork.depth, &Fork::depth);
        const bool said = std::ranges::any_of(there, [&](const Fork& one) {
            return one.depth == fork.depth && one.token == fork.token;
        });
        if (said || n_there == proposal.max_alternatives) continue;
        forks[n_forks++] = fork;
        draft.push_branch(fork.depth, fork.token, evidence(found, at));
        for (++at; at < n_most && at < fork.depth - first + kAlternativeTokens; ++at)
            draft.extend_branch(found.match.token(at), evidence(found, at));
    }
}

}  // namespace specllama
