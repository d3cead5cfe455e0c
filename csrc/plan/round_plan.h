#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "specllama/evidence.h"

namespace specllama {

struct TextRegime;

using EvidenceSpan = std::span<const Evidence>;

// An alternative to a token of a draft, or a token that follows an alternative. Nodes of the
// resulting tree are numbered: the draft's tokens first, then its alternatives.
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
    // Its first n_known and last n_rest tokens belong to another draft; nothing is learned from
    // them.
    int n_known = 0;
    int n_rest = 0;
    // Whether its tokens were drawn from distributions. Such a draft is verified as a whole or not
    // at all: a choice that depends on the drawn tokens would bias the output. So unless it is
    // required, it has one token.
    bool drawn = false;
    // Whether it must be verified, even if other candidates exist.
    bool required = false;
};

// The planner's input for one sequence in a round.
struct RoundRequest {
    TextRegime* regime = nullptr;   // of its text
    int n_tokens = 0;               // of the sequence so far: the position of a draft's first token
    int n_pending = 1;              // of those, tokens that the decode includes before the draft
    int max_draft = 0;              // most tokens that may be drafted in a row
    int max_rows = kMaxSpecLength;  // most tokens that may be verified
    int n_left = std::numeric_limits<int>::max();  // most tokens that may still be generated
    int n_unprocessed = 0;  // tokens that a draft model has to process before it drafts
    double overhead = 0;    // seconds of a round other than drafting and decoding
    double spent = 0;       // seconds spent on drafts for this round so far
    int stream = 0;         // of the sequence, in a memory with separate streams
    std::vector<DraftCandidate> candidates;
};

// The draft to verify for a sequence, with its expected cost.
struct Choice {
    int candidate = -1;  // index of the draft to verify; -1: none
    int n_draft = 0;     // tokens of it to verify, alternatives included
    // Expected tokens of the round, weakened by the risk exponent.
    double tokens = 1;
    // Expected seconds of the decode that all its sequences share; drafting is not included.
    double seconds = 0;
    // Of that decode: its sequences, including this one, and the committed and drafted tokens of
    // all.
    int n_sequences = 1;
    int n_committed = 1;
    int n_drafted = 0;
    // Its padding rows, and the cost of its change of width (WidthSwitch).
    int n_padding = 0;
    double width_switch_cost = 0;
    // Seconds that this sequence is expected to save, compared with plain decoding.
    double time_saved = 0;
};

// The plan for one sequence in a round.
struct RoundPlan {
    Choice choice;
    std::vector<int> rows;  // the nodes of the draft to verify, unless it is drawn
    int n_to_check = 0;     // tokens of `choice` that a draft model checks before it drafts its own
    // The choice before the draft model worked, if it has worked in this round.
    std::optional<Choice> without_draft_model;
};

// The result of a round for one sequence.
struct RoundOutcome {
    int n_accepted = 0;  // tokens of the draft that were accepted
    int n_judged = 0;  // tokens chosen by the target: n_accepted + 1, unless the round was aborted
    int n_repeated = 0;  // accepted tokens that the next decode must include again
    // [candidate]: how many of its first tokens agreed with the target, even if another draft was
    // verified.
    std::vector<int> n_right;
};

}  // namespace specllama
