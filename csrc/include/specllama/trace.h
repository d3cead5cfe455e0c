#pragma once

#include <vector>

#include "specllama/source.h"
#include "specllama/types.h"

namespace specllama {

// A token that was proposed and verified.
struct DraftedToken {
    Token token = kNoToken;
    Source source = Source::other;
    // What its drafter knew: tokens before it that agree with the text copied from, or the order of
    // the n-gram; and its relative frequency or probability, or 0 where the token copied had itself
    // broken off a copy.
    int length = 0;
    float confidence = 0;
    // Which token of the round's draft it comes after; -1: what was there before.
    int parent = -1;
    bool accepted = false;
};

// What one round did.
struct RoundTrace {
    // Generated tokens before it.
    int position = 0;
    // Depth first; where there are several guesses at a position, the likelier before the others.
    std::vector<DraftedToken> draft;
    int accepted = 0;
    // What came behind the accepted ones; kNoToken if nothing could.
    Token next = kNoToken;
    // And behind that unverified, since the grammar left no other.
    std::vector<Token> certain;
    double draft_seconds = 0;
    double decode_seconds = 0;
    // What the planner expected: tokens, and seconds of drafting and decoding; 0 with a fixed
    // spec_length.
    double expected_tokens = 0;
    double expected_seconds = 0;
};

}  // namespace specllama
