#pragma once

#include "specllama/types.h"

namespace specllama {

struct Proposal;

// Speculates for a drafter whose tokens take time, as drafters do for the target: guesses how its
// draft goes on, so that one decode may give several tokens of it. (The hierarchy of Leviathan et
// al. 2023, section 6.)
class Guesser {
 public:
    virtual ~Guesser() = default;

    // What is worth decoding behind the tokens and the draft so far, of which n_pending are not
    // decoded yet: at most n_most tokens, often none. Valid until the next call.
    virtual TokenSpan guess(const Proposal& proposal, int n_pending, int n_most) = 0;

    // That decode took `seconds`; the proposal now has the tokens that came of it.
    virtual void observe(const Proposal& proposal, double seconds) = 0;
};

}  // namespace specllama
