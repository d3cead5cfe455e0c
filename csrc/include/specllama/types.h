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

// No token, for example in a Chunk that holds only text.
inline constexpr Token kNoToken = -1;

// Ids below kNoToken are positions of images and sounds in a prompt (see media.h). begins_media:
// the first position of a chunk.
constexpr bool is_media(Token token) { return token < kNoToken; }
constexpr bool begins_media(Token token) { return is_media(token) && (kNoToken - token) % 2 == 1; }

// Longest draft that any drafter may propose.
inline constexpr int kMaxSpecLength = 64;

// Most candidates for one position of a draft.
inline constexpr int kMaxTreeWidth = 8;

// Default limit of generated tokens.
inline constexpr int kDefaultMaxTokens = 256;

// Parts of a text: [begin, end) in bytes, in order.
using TextRanges = std::span<const std::pair<std::size_t, std::size_t>>;

// A vocabulary's tokens for fill-in-the-middle prompts; kNoToken: the vocabulary has none.
struct FimTokens {
    // These precede the text before the gap, the text after it, and the text that fills it.
    Token prefix = kNoToken;
    Token suffix = kNoToken;
    Token middle = kNoToken;
    // These precede the name of a repository and the name of each of its files.
    Token repository = kNoToken;
    Token file = kNoToken;
};

// Why a generation ended. `none`: it is unfinished, it failed, or it was cancelled.
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

// A piece of a generation. The chunks' texts, joined in order, are the generated text; their tokens
// are the generated tokens.
struct Chunk {
    // Valid UTF-8. Empty while a character or a possible stop string is still incomplete.
    std::string text;
    // kNoToken: text before a stop string that began inside a token.
    Token token = kNoToken;
    // A drafter proposed the token and the target accepted it.
    bool from_draft = false;
    // Log-probabilities at the token's position, if SamplingOptions::logprobs asks for them.
    std::optional<TokenLogprobs> logprobs;
    // Set on the last chunk only.
    FinishReason finish_reason = FinishReason::none;
};

}  // namespace specllama
