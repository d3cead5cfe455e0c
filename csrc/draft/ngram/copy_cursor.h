#pragma once

#include <cstddef>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

class MatchFinder;

// The place in a text that a sequence copies from. A copy breaks off where the sequence says
// something else for once, and mostly goes on a little further. So that place is looked at first,
// if what the sequence ends with occurs elsewhere just as well.
class CopyCursor {
 public:
    // Number of places looked at after a copy broke off: that place and those after it.
    static constexpr std::size_t kReach = 9;

    // Starts a copy at a match in `text`, which must outlive the cursor.
    void start(const MatchFinder& text, const Match& match);

    // The sequence goes on with a token. Returns whether the copy does so, too.
    bool step(Token token);

    // Number of tokens that agree, and what the copy says next; empty where the copy broke off, or
    // where its text is at its end.
    Match match() const;

    // The best match near the place where the copy broke off: the one that shares most tokens with
    // the end of the sequence, among equals the first. Unlike other matches it may be short: one
    // token is enough. Never allocates.
    Match resume_near(TokenSpan sequence) const;

    // The text entered last; null: none.
    const MatchFinder* text() const { return text_; }

 private:
    const MatchFinder* text_ = nullptr;
    std::size_t index_ = 0;  // index in the text of the copy's next token
    int length_ = 0;         // tokens that agree; 0: the copy broke off
};

}  // namespace specllama
