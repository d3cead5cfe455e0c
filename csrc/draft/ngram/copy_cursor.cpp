#include "draft/ngram/copy_cursor.h"

#include <algorithm>

#include "draft/ngram/match_finder.h"

namespace specllama {

void CopyCursor::start(const MatchFinder& text, const Match& match) {
    text_ = &text;
    index_ = text.size() - match.continuation.size();
    length_ = match.length;
}

bool CopyCursor::step(Token token) {
    const Match ahead = match();
    if (ahead.length == 0 || ahead.token(0) != token) {
        length_ = 0;
        return false;
    }
    ++index_;
    length_ = std::min(length_ + 1, kMaxMatch);
    return true;
}

Match CopyCursor::match() const {
    if (length_ == 0) return {};
    const TokenSpan ahead = text_->from(index_);
    return {ahead.empty() ? 0 : length_, ahead};
}

Match CopyCursor::resume_near(TokenSpan sequence) const {
    Match best;
    if (text_ == nullptr) return best;
    const TokenSpan ahead = text_->from(index_);
    for (std::size_t i = 0; i < std::min(ahead.size(), kReach); ++i) {
        const TokenSpan before(text_->tokens().data(), ahead.data() + i);
        const int agree = common_suffix(sequence, before);
        if (agree > best.length) best = {agree, ahead.subspan(i)};
    }
    return best;
}

}  // namespace specllama
