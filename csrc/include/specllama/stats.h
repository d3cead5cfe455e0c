#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "specllama/source.h"

namespace specllama {

// Time spent in the parts of a generation, in seconds of a monotonic clock. Only time inside the
// library counts, not what the reader does between two steps; what several generations do together
// counts for each of them.
struct Seconds {
    double prefill = 0;  // decoding the prompt, up to and with the first token's logits
    double draft = 0;    // the drafter: proposing, and being told the outcome
    double verify = 0;   // the target's decodes after the prefill, and cutting the KV memory back
    double choose = 0;   // choosing tokens from logits
    double text = 0;     // turning tokens into text and looking for stop strings
    double total = 0;    // everything, from start to finish
};

struct Round {
    int drafted = 0;
    int accepted = 0;
};

// What one generation did. Counts are exact; they are updated after every round.
struct Stats {
    int prompt_tokens = 0;
    // Seed of the sampling, given or fresh.
    std::uint64_t seed = 0;
    // Whether the session was in the configuration in which speculation changes no token at all;
    // elsewhere near-ties may fall differently.
    bool exact = false;
    // Prompt tokens that another generation, earlier or at the same time, had in the KV memory.
    int reused_tokens = 0;
    int generated_tokens = 0;
    // Target decodes that chose tokens, including the one that ends the prefill.
    int rounds = 0;
    int drafted = 0;
    // Draft tokens equal to the target's choice, also those that a stop condition then cut off.
    int accepted = 0;
    // Tokens that came unverified, since the grammar left no other, the one that ends the text
    // among them; they have no round.
    int certain = 0;
    // Rows that target decodes had beside those that were wanted, since so they took less time.
    int padded = 0;
    // Tokens that the draft model decoded; 0 without one.
    int draft_decoded_tokens = 0;
    // [i]: how often the draft token at position i (from 0) was proposed, and accepted.
    std::vector<int> drafted_by_position;
    std::vector<int> accepted_by_position;
    // [r]: how often the guess of rank r at its position (from 0, the likeliest) was proposed, and
    // accepted.
    std::vector<int> drafted_by_rank;
    std::vector<int> accepted_by_rank;
    // One entry per round; {0, 0} where nothing was drafted.
    std::vector<Round> by_round;
    // [source]: draft tokens that came from there, and how many of them were accepted.
    std::array<Round, kSourceNames.size()> by_source;
    // What the planner believes at the end. [n - 1]: seconds of a target decode of n tokens at an
    // empty context, 0 where none was seen; and those of one step of the draft model. Empty and 0
    // with a fixed spec_length.
    std::vector<double> decode_seconds;
    double draft_step_seconds = 0;
    // Rounds that went plain because the drafter failed or proposed what it may not.
    int drafter_errors = 0;
    std::string last_drafter_error;
    // Tokens that the round ending the prefill gave, 1 or none; they belong to the prefill's time.
    int prefill_generated_tokens = 0;
    Seconds seconds;

    // accepted / drafted; 0 when nothing was drafted.
    double acceptance_rate() const;
    // generated_tokens / rounds; 0 before the first round.
    double tokens_per_round() const;
    // Tokens generated per second after the prefill; 0 when there were none.
    double tokens_per_second() const;
    // Prompt tokens decoded per second of prefill; 0 when there were none.
    double prompt_tokens_per_second() const;
};

}  // namespace specllama
