#pragma once

#include <optional>
#include <span>
#include <vector>

#include "specllama/evidence.h"

namespace specllama {

struct Phase;

using EvidenceSpan = std::span<const Evidence>;

// A token beside a draft at hand, in a tree of nodes: those of the draft first, then these.
struct Side {
    Evidence evidence;
    int parent = -1;  // the node that it comes after; -1: what is committed
    int rank = 0;     // siblings before it
    int elder = -1;   // the last of these; -1: none
    // Whether it was the target's token; said of those whose elder siblings were wrong.
    std::optional<bool> right = std::nullopt;
};

// A draft at hand, and how it did.
struct Offer {
    EvidenceSpan evidence;
    std::span<const Side> sides;  // none if it is drawn
    // Of its first tokens, and of its last ones, how many are another draft's, so that nothing is
    // learned from them.
    int n_known = 0;
    int n_rest = 0;
    // Drawn from distributions: it is verified whole or not at all, and of its evidence only the
    // first token's is looked at. All else depends on what was drawn, and would distort what comes
    // out.
    bool drawn = false;
    // It must be verified, whatever else there is.
    bool required = false;
    // How many of its tokens, from the first, the target was heard to agree with; also where
    // another draft was verified.
    int n_right = 0;
};

// What a round should do for a sequence.
struct Choice {
    int offer = -1;   // index of the draft to verify; -1: none
    int n_draft = 0;  // how many of its tokens, and of those beside it
    // Tokens to expect, as caution counts them.
    double tokens = 1;
    // Seconds of the decode, which is shared by all its sequences, what was spent before left out.
    double seconds = 0;
    // What the sequence shares the decode with: all sequences, itself included, their committed
    // tokens and their drafts' tokens.
    int n_sequences = 1;
    int n_committed = 1;
    int n_drafted = 0;
    // Seconds by which it is expected to be faster than decoding plainly.
    double saved = 0;
};

// A round of one sequence: what is at hand, what is done, and what came of it.
struct Turn {
    // At hand.
    Phase* phase = nullptr;         // of its request
    int n_tokens = 0;               // of the sequence so far: the position of a draft's first token
    int n_pending = 1;              // of those, how many the decode takes in before the draft
    int max_draft = 0;              // most tokens that may be drafted in a row
    int max_rows = kMaxSpecLength;  // most tokens that may be verified
    int n_behind = 0;               // tokens that a draft model has to take in before it drafts
    double overhead = 0;            // seconds a round costs beside drafting and decoding
    double spent = 0;               // seconds that went into drafts for this round so far
    bool asked = false;             // whether a draft model has worked in them, drafts or none
    int place = 0;                  // in the memory, where sequences lie apart in it
    std::vector<Offer> offers;
    // Done.
    Choice choice;
    std::vector<int> rows;  // which nodes of the draft to verify, unless it is drawn
    // What came of it: tokens that were accepted, and that the target was heard about, which is
    // one more unless the round broke off.
    int n_accepted = 0;
    int n_judged = 0;
    int n_again = 0;  // of the accepted ones, those that the next decode takes in once more
};

}  // namespace specllama
