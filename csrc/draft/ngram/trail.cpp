#include "draft/ngram/trail.h"

#include <algorithm>

#include "draft/ngram/match_finder.h"

namespace specllama {

void Trail::enter(const MatchFinder& text, const Match& match) {
    text_ = &text;
    place_ = text.size() - match.continuation.size();
    length_ = match.length;
}

bool Trail::step(Token token) {
    const Match ahead = match();
    if (ahead.length == 0 || ahead.token(0) != token) {
        length_ = 0;
        return false;
    }
    ++place_;
    length_ = std::min(length_ + 1, kMaxMatch);
    return true;
}

Match Trail::match() const {
    if (length_ == 0) return {};
    const TokenSpan ahead = text_->from(place_);
    return {ahead.empty() ? 0 : length_, ahead};
}

Match Trail::near(TokenSpan sequence) const {
    Match best;
    if (text_ == nullptr) return best;
    const TokenSpan ahead = text_->from(place_);
    for (std::size_t i = 0; i < std::min(ahead.size(), kReach); ++i) {
        const TokenSpan before(text_->tokens().data(), ahead.data() + i);
        const int agree = common_suffix(sequence, before);
        if (agree > best.length) best = {agree, ahead.subspan(i)};
    }
    return best;
}

}  // namespace specllama
