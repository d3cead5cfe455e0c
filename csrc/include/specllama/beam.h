#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "specllama/option.h"
#include "specllama/stats.h"
#include "specllama/types.h"

namespace specllama {

// When a beam search stops before max_tokens, after n_beams texts have ended.
enum class EarlyStopping {
    no,     // when the best running text, ended here, would not beat the worst ended text
    yes,    // at once
    never,  // when no running text can beat the worst ended text at any length
};

inline constexpr int kMaxBeams = 64;

// Beam search with the rules of Hugging Face's transformers.
struct BeamOptions {
    int n_beams = 4;
    double length_penalty = 1;
    EarlyStopping early_stopping = EarlyStopping::no;
    // Per text, at least 1. The context must have room for this many tokens of every beam. -1: as
    // many as fit. None: as many as fit, at most 256.
    std::optional<int> max_tokens;
    std::vector<std::string> stop;
    std::vector<Token> reference;
    bool cache_prompt = true;
};

template <typename Visit>
void list_options(const BeamOptions*, Visit&& option) {
    using Options = BeamOptions;
    option(&Options::n_beams, {.name = "n_beams",
                               .help = "Texts kept at each step.",
                               .low = 1,
                               .high = kMaxBeams,
                               .aliases = "num_beams"});
    option(&Options::length_penalty,
           {.name = "length_penalty",
            .help = "Exponent of the length in a text's score, log-probability / length ** "
                    "length_penalty. The length counts tokens, including the one that ends the "
                    "text. Above 0 favours longer texts, below 0 shorter ones.",
            .low = -100,
            .high = 100});
    option(&Options::early_stopping,
           {.name = "early_stopping",
            .help = "Condition that ends the search after n_beams texts have ended.",
            .choices = "no yes never"});
    option(&Options::max_tokens, {.name = "max_tokens"});
    option(&Options::stop, {.name = "stop"});
    option(&Options::reference, {.name = "reference"});
    option(&Options::cache_prompt, {.name = "cache_prompt"});
}

// A text that a beam search found.
struct Beam {
    std::string text;
    // Without an end token, and without the tokens that contain a part of a stop string.
    std::vector<Token> tokens;
    // Natural logarithm of the probability of the text and of the tokens that ended it.
    double logprob = 0;
    double score = 0;
    FinishReason finish_reason = FinishReason::none;
};

struct BeamResult {
    // n_beams texts, or fewer if the vocabulary has fewer tokens; the best score first.
    std::vector<Beam> beams;
    // Of the whole search. generated_tokens: steps; each adds a token to every beam. drafted:
    // tokens decoded ahead of the search. accepted: those that became a token of a beam.
    Stats stats;
};

// Called before each round of a search. An exception ends the search and is passed on.
using BetweenRounds = std::function<void()>;

}  // namespace specllama
