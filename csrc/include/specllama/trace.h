#pragma once

#include <vector>

#include "specllama/source.h"
#include "specllama/types.h"

namespace specllama {

// A token that was proposed and verified.
struct DraftedToken {
    Token token = kNoToken;
    Source source = Source::other;
    // See Evidence.
    int length = 0;
    float confidence = 0;
    // Index in RoundTrace::draft of the token that it follows; -1: the committed text.
    int parent = -1;
    bool accepted = false;
};

// The record of one round.
struct RoundTrace {
    // Tokens generated before this round.
    int position = 0;
    // Depth first; of several candidates for a position, the likelier first.
    std::vector<DraftedToken> draft;
    int accepted = 0;
    // The target's token after the accepted ones; kNoToken if there was none.
    Token next = kNoToken;
    // Tokens that followed unverified, because the grammar allowed no other.
    std::vector<Token> forced;
    double draft_seconds = 0;
    double decode_seconds = 0;
    // The planner's expectation: tokens, and seconds of drafting and decoding. 0 with a fixed
    // spec_length, and for a draft that comes with a request.
    double expected_tokens = 0;
    double expected_seconds = 0;
};

}  // namespace specllama
