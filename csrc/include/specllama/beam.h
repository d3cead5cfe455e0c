#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "specllama/stats.h"
#include "specllama/types.h"

namespace specllama {

// When a beam search ends before its texts have max_tokens, given as many ended texts as beams.
enum class EarlyStopping {
    no,     // when the best text that goes on would score less if it ended here
    yes,    // at once
    never,  // when no text that goes on can score more, whatever length it may come to
};

// Beam search with the rules of Hugging Face's transformers.
struct BeamOptions {
    // Texts kept at each step, 1 to kMaxBeams.
    int n_beams = 4;
    // A text's score is the logarithm of its probability divided by its length in tokens, the one
    // that ends it included, to this power: above 0 longer texts score more, below 0 shorter ones.
    double length_penalty = 1;
    EarlyStopping early_stopping = EarlyStopping::no;
    // Most tokens of a text, at least 1; the context must have room for as many of each beam. -1:
    // as many as it has room for. None: 256, or as many.
    std::optional<int> max_tokens;
    // A text ends before the first of these; none may be empty.
    std::vector<std::string> stop;
    // As in GenerateOptions.
    std::vector<Token> reference;
};

inline constexpr int kMaxBeams = 64;

// A text that a beam search found.
struct Beam {
    std::string text;
    // Without the one that ended it.
    std::vector<Token> tokens;
    // Natural logarithm of the probability of all its tokens, the one that ended it included.
    double logprob = 0;
    double score = 0;
    FinishReason finish_reason = FinishReason::none;
};

struct BeamResult {
    // n_beams, or fewer where the vocabulary has fewer tokens; the best score first.
    std::vector<Beam> beams;
    // Of the whole search: generated_tokens counts its steps, of which each gives all beams a
    // token; drafted, tokens decoded ahead of the search; accepted, those of them that became a
    // token of a beam.
    Stats stats;
};

// Called between the rounds of a search. What it throws ends the search and is passed on.
using BetweenRounds = std::function<void()>;

}  // namespace specllama
