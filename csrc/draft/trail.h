#pragma once

#include <cstddef>

#include "draft/match.h"
#include "specllama/types.h"

namespace specllama {

class MatchFinder;

// Where in a text a sequence copies from. A copy that breaks off, since the sequence says something
// else for once, mostly goes on a little further: that is where to look first, when what the
// sequence ends with stands elsewhere just as well.
class Trail {
 public:
    // Places looked at after a copy broke off: that one, and those behind it.
    static constexpr std::size_t kReach = 9;

    // A copy begins at a match in this text, which must outlive the trail.
    void enter(const MatchFinder& text, const Match& match);

    // The sequence goes on with a token. Whether the copy does.
    bool step(Token token);

    // How many tokens agree, and what the copy says next; none where it broke off, or where its
    // text is at its end.
    Match match() const;

    // Where the copy that broke off may go on after the end of the sequence; of places that agree
    // in as many tokens the first. Unlike others, these matches may be short: one token is enough.
    // Never allocates.
    Match near(TokenSpan sequence) const;

    // What was entered last.
    const MatchFinder* text() const { return text_; }

 private:
    const MatchFinder* text_ = nullptr;
    std::size_t place_ = 0;  // of the token that the copy says next
    int length_ = 0;         // 0: it broke off
};

}  // namespace specllama
