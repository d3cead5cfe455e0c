#include "draft/ngram/match_finder.h"

#include <algorithm>
#include <string>

#include "fnv.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// Most entries compared, including those that only have the same bucket.
constexpr int kMaxSteps = 4 * MatchFinder::kMaxCandidates;

}  // namespace

MatchFinder::MatchFinder(std::int64_t max_tokens)
    : max_tokens_(static_cast<std::size_t>(max_tokens)) {
    if (max_tokens < kMinTokens || max_tokens > kMaxTokens)
        throw InvalidArgument("max_tokens must be from " + std::to_string(kMinTokens) + " to " +
                              std::to_string(kMaxTokens) + ", not " + std::to_string(max_tokens) +
                              ".");
}

// The head of the chain for the kMinMatch tokens that end at `last`.
MatchFinder::Index& MatchFinder::head(Index last) {
    const TokenSpan gram = TokenSpan(tokens_).subspan(last + 1 - kMinMatch, kMinMatch);
    return heads_[bucket_of(gram, heads_.size())];
}

// Adds the first token without a link to its bucket.
void MatchFinder::enter() {
    const auto last = static_cast<Index>(links_.size());
    if (last + 1 < kMinMatch) {
        links_.push_back(kNone);
        return;
    }
    Index& latest = head(last);
    links_.push_back(latest);
    latest = last;
}

void MatchFinder::make_room(std::size_t n_wanted) {
    // A token takes 10 bytes: 4 for its id, 4 for its link, 2 for its half of a head. The capacity
    // grows by a factor of 3/2, so at most 15 bytes are in use per token.
    if (capacity_ < max_tokens_) {
        const std::size_t n_least = std::max<std::size_t>(kMinTokens, capacity_ * 3 / 2);
        const std::size_t capacity = std::min(std::max(n_least, n_wanted), max_tokens_);
        tokens_.reserve(capacity);
        links_.reserve(capacity);
        capacity_ = capacity;
    } else {
        const std::size_t n_gone = tokens_.size() / 2;
        tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n_gone));
        n_forgotten_ += n_gone;
    }
    heads_.assign(capacity_ / 2, kNone);
    links_.clear();
    while (links_.size() < tokens_.size()) enter();
}

void MatchFinder::append(Token token) { append(TokenSpan(&token, 1)); }

void MatchFinder::append(TokenSpan tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens_.size() == capacity_) make_room(capacity_ + tokens.size() - i);
        tokens_.push_back(tokens[i]);
        enter();
    }
}

void MatchFinder::truncate(std::size_t n) {
    const std::size_t n_held = n > n_forgotten_ ? n - n_forgotten_ : 0;
    // Backwards, so that each removed token is the head of its chain.
    while (tokens_.size() > n_held) {
        const auto last = static_cast<Index>(tokens_.size() - 1);
        if (last + 1 >= kMinMatch) head(last) = links_[last];
        tokens_.pop_back();
        links_.pop_back();
    }
    n_forgotten_ = std::min(n_forgotten_, n);
}

// Calls take(length of the match, index of the token after it) for each candidate, the latest
// first.
template <typename Take>
void MatchFinder::each(TokenSpan text, Take take) const {
    if (text.size() < kMinMatch || heads_.empty()) return;
    int n_candidates = 0;
    Index at = heads_[bucket_of(text.last(kMinMatch), heads_.size())];
    for (int step = 0; at != kNone && n_candidates < kMaxCandidates && step < kMaxSteps; ++step) {
        const Index next = at + 1;
        at = links_[at];
        if (next == tokens_.size())
            continue;  // no continuation: this may be the end of the text itself
        const int agree = common_suffix(text, tokens().first(next));
        if (agree < kMinMatch) continue;
        ++n_candidates;
        take(agree, next);
    }
}

Match MatchFinder::find(TokenSpan text) const {
    LongestMatches found;
    each(text, [&](int agree, Index next) { found.add(agree, next); });
    if (found.empty()) return {};
    return {found.length(), tokens().subspan(found.best(tokens_))};
}

std::size_t MatchFinder::find_all(TokenSpan text, std::span<Match> out) const {
    std::size_t n = 0;
    each(text, [&](int agree, Index next) {
        std::size_t at = n;
        while (at > 0 && out[at - 1].length < agree) --at;
        if (at == out.size()) return;
        n = std::min(n + 1, out.size());
        const std::span<Match> behind = out.first(n).subspan(at);
        std::shift_right(behind.begin(), behind.end(), 1);
        out[at] = {agree, tokens().subspan(next)};
    });
    return n;
}

std::size_t MatchFinder::size_bytes() const {
    return sizeof(*this) + tokens_.capacity() * sizeof(Token) +
           (links_.capacity() + heads_.capacity()) * sizeof(Index);
}

}  // namespace specllama
