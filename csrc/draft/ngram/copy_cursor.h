#pragma once

#include <algorithm>
#include <cstddef>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// The place in a text that a sequence copies from. A copy breaks off where the sequence says
// something else for once, and mostly goes on a little further. So that place is looked at first,
// if what the sequence ends with occurs elsewhere just as well.
//
// Text: what is copied from. `from(place)` gives the tokens from a place on, none if that place is
// not held; `before(place)` those before a place that is.
template <typename Text>
class CopyCursor {
 public:
    // Number of places looked at after a copy broke off: that place and those after it.
    static constexpr std::size_t kReach = 9;

    // Starts a copy in `text`, which must outlive the cursor. place: index of the copy's next
    // token; length: number of tokens before it that agree.
    void start(const Text& text, std::size_t place, int length) {
        text_ = &text;
        place_ = place;
        length_ = length;
    }

    // The sequence goes on with a token. Returns whether the copy does so, too.
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

    // Number of tokens that agree, and what the copy says next; empty where the copy broke off, or
    // where its text is at its end.
    Match match() const {
        if (length_ == 0) return {};
        const TokenSpan ahead = text_->from(place_);
        return {ahead.empty() ? 0 : length_, ahead};
    }

    // Moves to the best place near that where the copy broke off: the one before which most tokens
    // agree with the end of the sequence, among equals the first. Unlike other matches it may be
    // short: one token is enough. Does nothing, and returns false, if none has so many or fewer
    // than `least`. Never allocates.
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

    // The text entered last; null: none.
    const Text* text() const { return text_; }

 private:
    const Text* text_ = nullptr;
    std::size_t place_ = 0;  // index in the text of the copy's next token
    int length_ = 0;         // tokens that agree; 0: the copy broke off
};

}  // namespace specllama
