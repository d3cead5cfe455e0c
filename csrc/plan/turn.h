#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "specllama/evidence.h"

namespace specllama {

struct Phase;

using EvidenceSpan = std::span<const Evidence>;

// An alternative token beside a draft. Nodes of the resulting tree are numbered: the draft's tokens
// first, then its sides.
struct Side {
    Evidence evidence;
    int parent = -1;  // the node that it follows; -1: the committed text
    int rank = 0;     // number of siblings before it
    // Whether it was the target's token; set only if all elder siblings were wrong.
    std::optional<bool> right = std::nullopt;
};

// A draft that could be verified, and how it did.
struct DraftCandidate {
    EvidenceSpan evidence;
    std::span<const Side> sides;  // none if it is drawn
    // Its first n_known and last n_rest tokens are another draft's; nothing is learned from them.
    int n_known = 0;
    int n_rest = 0;
    // Whether its tokens were drawn from distributions. Such a draft is verified whole or not at
    // all: any choice that depends on the tokens drawn would distort the distribution of the
    // output. So unless it is required, it has one token.
    bool drawn = false;
    // Whether it is the one to verify, whatever else there is.
    bool required = false;
    // How many of its first tokens agreed with the target, also if another draft was verified.
    int n_right = 0;
};

// What a round should do for a sequence.
struct Choice {
    int candidate = -1;  // index of the draft to verify; -1: none
    int n_draft = 0;     // tokens of it to verify, sides included
    // Expected tokens of the round, weakened by caution.
    double tokens = 1;
    // Expected seconds of the decode that all its sequences share; drafting is not included.
    double seconds = 0;
    // Of that decode: its sequences, this one included, and the committed and drafted tokens of
    // all.
    int n_sequences = 1;
    int n_committed = 1;
    int n_drafted = 0;
    // Rows that pad it, and what it costs that the last one had another width: see WidthChange.
    int n_padding = 0;
    double change = 0;
    // Seconds by which this sequence is expected to be faster than by plain decoding.
    double saved = 0;
};

// A round of one sequence: the drafts at hand, the choice, and the outcome.
struct Turn {
    // At hand.
    Phase* phase = nullptr;         // of its request
    int n_tokens = 0;               // of the sequence so far: the position of a draft's first token
    int n_pending = 1;              // of those, how many the decode takes in before the draft
    int max_draft = 0;              // most tokens that may be drafted in a row
    int max_rows = kMaxSpecLength;  // most tokens that may be verified
    int n_left = std::numeric_limits<int>::max();  // most tokens that may still be generated
    int n_behind = 0;     // tokens that a draft model has to take in before it drafts
    double overhead = 0;  // seconds a round costs beside drafting and decoding
    double spent = 0;     // seconds spent on drafts for this round so far
    int n_guess = 0;      // tokens of `choice` that a draft model checks before it drafts its own
    // The choice without a draft model, if one has worked since, drafting or not.
    std::optional<Choice> unasked;
    int place = 0;  // of the sequence in a memory that is split
    std::vector<DraftCandidate> candidates;
    // The choice.
    Choice choice;
    std::vector<int> rows;  // the nodes of the draft to verify, unless it is drawn
    // The outcome.
    int n_accepted = 0;  // tokens of the draft that were accepted
    int n_judged = 0;    // tokens that the target named: n_accepted + 1, unless the round broke off
    int n_again = 0;     // accepted tokens that the next decode must take in once more
};

}  // namespace specllama
