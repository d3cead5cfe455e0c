#pragma once

#include <algorithm>
#include <cstddef>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// The place in a text that a sequence copies from. A copy that breaks off at a different token
// usually resumes a few tokens later. So that place is preferred to others that match the end of
// the sequence equally well.
//
// Text: the text to copy from. `from(place)` returns the tokens from a place on, none if the place
// is not held; `before(place)` returns those before a held place.
template <typename Text>
class CopyCursor {
 public:
    // Places compared after a copy broke off: that place and those after it.
    static constexpr std::size_t kReach = 9;

    // Starts a copy from `text`, which must outlive the cursor. place: index of the copy's next
    // token; length: number of tokens before it that agree.
    void start(const Text& text, std::size_t place, int length) {
        text_ = &text;
        place_ = place;
        length_ = length;
    }

    // Continues the sequence with a token. Returns whether the copy has the same token.
    bool step(Token token) {
        const Match ahead = match();
        if (ahead.length == 0 || ahead.token(0) != token) {
            length_ = 0;
            return false;
        }
        ++place_;
        length_ = std::min(length_ + 1, kMaxMatch);
        return true;
    }

    // The number of tokens that agree, and the copy's next tokens; empty after the copy broke off
    // or reached the end of its text.
    Match match() const {
        if (length_ == 0) return {};
        const TokenSpan ahead = text_->from(place_);
        return {ahead.empty() ? 0 : length_, ahead};
    }

    // Moves to the place near the break where most preceding tokens agree with the end of the
    // sequence; among equals, the first. One token is enough, unlike for other matches. Does
    // nothing and returns false if no token agrees, or fewer than `least`. Never allocates.
    bool resume_near(TokenSpan sequence, int least) {
        if (text_ == nullptr) return false;
        const std::size_t n = std::min(text_->from(place_).size(), kReach);
        std::size_t best = 0;
        int longest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const int agree = common_suffix(sequence, text_->before(place_ + i));
            if (agree <= longest) continue;
            longest = agree;
            best = i;
        }
        if (longest == 0 || longest < least) return false;
        place_ += best;
        length_ = longest;
        return true;
    }

    // The text of the last copy; null: none.
    const Text* text() const { return text_; }

 private:
    const Text* text_ = nullptr;
    std::size_t place_ = 0;  // index in the text of the copy's next token
    int length_ = 0;         // tokens that agree; 0: no copy, or it broke off
};

}  // namespace specllama
