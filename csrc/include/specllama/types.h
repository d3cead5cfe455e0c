#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace specllama {

using Token = std::int32_t;
using TokenSpan = std::span<const Token>;

// Absolute index of a token in its sequence, from 0.
using Position = std::int32_t;

using SequenceId = std::int32_t;

// Stands where there is no token: a piece of text that no token stands for.
inline constexpr Token kNoToken = -1;

// Longest draft that any drafter may propose.
inline constexpr int kMaxSpecLength = 64;

// Most guesses at one position.
inline constexpr int kMaxGuesses = 8;

// Most tokens of a text where that is left open.
inline constexpr int kDefaultMaxTokens = 256;

// A vocabulary's tokens for filling in the middle of a text; kNoToken where it has none.
struct FimTokens {
    // Before what precedes the gap, before what follows it, and before what fills it.
    Token prefix = kNoToken;
    Token suffix = kNoToken;
    Token middle = kNoToken;
    // Before the name of a repository, and before that of each of its files.
    Token repository = kNoToken;
    Token file = kNoToken;
};

// Why a generation ended. `none`: it has not, or its reader left it early.
enum class FinishReason {
    none,
    stop,    // end-of-generation token or stop string
    length,  // max_tokens, or the context is full
};

// Natural logarithms of probabilities at one position.
struct TokenLogprobs {
    Token token = kNoToken;
    float logprob = 0;
    // The most likely tokens and theirs, the likeliest first.
    std::vector<std::pair<Token, float>> top;
};

// A step of a generation as the reader sees it. Chunks come in order; their texts joined are the
// generated text, their tokens the generated tokens.
struct Chunk {
    // Valid UTF-8. Empty while a character or a possible stop string is still incomplete.
    std::string text;
    // kNoToken: text before a stop string that began inside a token.
    Token token = kNoToken;
    // The drafter proposed the token and the target agreed.
    bool from_draft = false;
    // Of the token, where SamplingOptions::logprobs asks for them.
    std::optional<TokenLogprobs> logprobs;
    // Set on the last chunk only.
    FinishReason finish_reason = FinishReason::none;
};

}  // namespace specllama
