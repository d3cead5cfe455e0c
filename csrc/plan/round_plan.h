#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "specllama/evidence.h"

namespace specllama {

struct TextRegime;

using EvidenceSpan = std::span<const Evidence>;

// An alternative to a token of a draft, or a token that follows one. Nodes of the resulting tree
// are numbered: the draft's tokens first, then its alternatives.
struct Alternative {
    Evidence evidence;
    int parent = -1;  // the node that it follows; -1: the committed text
    int rank = 0;     // number of siblings before it
    // Whether it was the target's token; set only if all elder siblings were wrong.
    std::optional<bool> right = std::nullopt;
};

// A draft that could be verified.
struct DraftCandidate {
    EvidenceSpan evidence;
    std::span<const Alternative> alternatives;  // none if it is drawn
    // Its first n_known and last n_rest tokens are another draft's; nothing is learned from them.
    int n_known = 0;
    int n_rest = 0;
    // Whether its tokens were drawn from distributions. Such a draft is verified whole or not at
    // all: any choice that depends on the tokens drawn would distort the distribution of the
    // output. So unless it is required, it has one token.
    bool drawn = false;
    // Whether it is the one to verify, whatever else there is.
    bool required = false;
};

// What is asked for one sequence in a round.
struct RoundRequest {
    TextRegime* regime = nullptr;   // of its text
    int n_tokens = 0;               // of the sequence so far: the position of a draft's first token
    int n_pending = 1;              // of those, how many the decode takes in before the draft
    int max_draft = 0;              // most tokens that may be drafted in a row
    int max_rows = kMaxSpecLength;  // most tokens that may be verified
    int n_left = std::numeric_limits<int>::max();  // most tokens that may still be generated
    int n_unprocessed = 0;  // tokens that a draft model has to process before it drafts
    double overhead = 0;    // seconds that a round costs besides drafting and decoding
    double spent = 0;       // seconds spent on drafts for this round so far
    int stream = 0;         // of the sequence, in a memory with a stream for each
    std::vector<DraftCandidate> candidates;
};

// What a round should do for a sequence.
struct Choice {
    int candidate = -1;  // index of the draft to verify; -1: none
    int n_draft = 0;     // tokens of it to verify, alternatives included
    // Expected tokens of the round, weakened by the risk exponent.
    double tokens = 1;
    // Expected seconds of the decode that all its sequences share; drafting is not included.
    double seconds = 0;
    // Of that decode: its sequences, this one included, and the committed and drafted tokens of
    // all.
    int n_sequences = 1;
    int n_committed = 1;
    int n_drafted = 0;
    // Rows that pad it, and what it costs that the last one had another width: see WidthSwitch.
    int n_padding = 0;
    double width_switch_cost = 0;
    // Seconds by which this sequence is expected to be faster than by plain decoding.
    double time_saved = 0;
};

// What is chosen for one sequence in a round.
struct RoundPlan {
    Choice choice;
    std::vector<int> rows;  // the nodes of the draft to verify, unless it is drawn
    int n_to_check = 0;     // tokens of `choice` that a draft model checks before it drafts its own
    // The choice without the draft model, if that has worked since, drafting or not.
    std::optional<Choice> without_draft_model;
};

// What came of the round for one sequence.
struct RoundOutcome {
    int n_accepted = 0;  // tokens of the draft that were accepted
    int n_judged = 0;    // tokens of the target's: n_accepted + 1, unless the round broke off
    int n_repeated = 0;  // accepted tokens that the next decode must take in once more
    // [candidate]: how many of its first tokens agreed with the target, also if another draft was
    // verified.
    std::vector<int> n_right;
};

}  // namespace specllama
