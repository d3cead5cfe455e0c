#pragma once

#include <cstddef>
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

// No token, for example for a piece of text that no token stands for.
inline constexpr Token kNoToken = -1;

// Whether a token of a prompt stands for a position of an image or a sound, and whether that is the
// first one of a chunk (see media.h).
constexpr bool is_media(Token token) { return token < kNoToken; }
constexpr bool begins_media(Token token) { return is_media(token) && (kNoToken - token) % 2 == 1; }

// Longest draft that any drafter may propose.
inline constexpr int kMaxSpecLength = 64;

// Most candidates for one position of a draft.
inline constexpr int kMaxTreeWidth = 8;

// Default for the most tokens of a text.
inline constexpr int kDefaultMaxTokens = 256;

// Parts of a text: [begin, end) in bytes, in order.
using TextRanges = std::span<const std::pair<std::size_t, std::size_t>>;

// A vocabulary's tokens for filling in the middle of a text; kNoToken where it has none.
struct FimTokens {
    // These come before the text that precedes the gap, that follows it, and that fills it.
    Token prefix = kNoToken;
    Token suffix = kNoToken;
    Token middle = kNoToken;
    // These come before the name of a repository, and before the name of each of its files.
    Token repository = kNoToken;
    Token file = kNoToken;
};

// Why a generation ended. `none`: it has not ended, it failed, or its reader left it early.
enum class FinishReason {
    none,
    stop,    // end-of-generation token or stop string
    length,  // max_tokens, or the context is full
};

// Natural logarithms of probabilities at one position.
struct TokenLogprobs {
    Token token = kNoToken;
    float logprob = 0;
    // The likeliest tokens with their log-probabilities, the likeliest first.
    std::vector<std::pair<Token, float>> top;
};

// A piece of a generation as the reader sees it. Chunks come in order: their texts joined are the
// generated text, their tokens the generated tokens.
struct Chunk {
    // Valid UTF-8. Empty while a character or a possible stop string is still incomplete.
    std::string text;
    // kNoToken: text before a stop string that began inside a token.
    Token token = kNoToken;
    // The drafter proposed the token and the target agreed.
    bool from_draft = false;
    // Log-probabilities at the token's position, if SamplingOptions::logprobs asks for them.
    std::optional<TokenLogprobs> logprobs;
    // Set on the last chunk only.
    FinishReason finish_reason = FinishReason::none;
};

}  // namespace specllama
