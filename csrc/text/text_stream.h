#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Turns the bytes of generated tokens into chunks: only whole UTF-8 characters, and nothing that
// may be the beginning of a stop string.
//
// There is one chunk per token, once it is certain that the token stays. A token that contains a
// part of a stop string is dropped; its text before the stop string becomes a chunk without a
// token.
class TextStream {
 public:
    // stop: no empty strings.
    explicit TextStream(std::vector<std::string> stop) : stop_(std::move(stop)) {}

    bool has_stops() const { return !stop_.empty(); }

    // Whether a text is one of the stop strings.
    bool is_stop(std::string_view text) const { return std::ranges::count(stop_, text) > 0; }

    // Adds a token, whose bytes `append_piece(bytes)` appends to a string. Returns whether a stop
    // string is now complete: nothing may be pushed after that.
    template <typename AppendPiece>
    bool push(Token token, bool from_draft, std::optional<TokenLogprobs> logprobs,
              AppendPiece append_piece) {
        const std::size_t before = bytes_.size();
        append_piece(bytes_);
        tokens_.push_back({token, from_draft, bytes_.size(), std::move(logprobs)});
        return find_stop(before);
    }

    // Appends the certain chunks to `chunks`, or all when the generation has `ended`; the last
    // chunk then has the reason, if there is one.
    void take(bool ended, FinishReason reason, std::vector<Chunk>& chunks);

    // Everything pushed so far, up to the stop string, including what `take` still holds back.
    std::string text() const;

    // The stop string that ended the text; "" if none did. If several begin at that place, the
    // first one of the list.
    std::string stop_string() const;

    // Log-probabilities of the kept tokens; empty if they were not requested.
    std::vector<TokenLogprobs> logprobs() const;

    // Number of pushed tokens that end before the stop string; all of them if there is none.
    std::size_t n_kept() const;

 private:
    struct PushedToken {
        Token token;
        bool from_draft;
        std::size_t end;  // offset in bytes_ after its last byte
        std::optional<TokenLogprobs> logprobs;
    };

    bool find_stop(std::size_t n_searched);
    std::size_t n_certain() const;

    std::vector<std::string> stop_;
    std::string bytes_;
    std::vector<PushedToken> tokens_;
    std::size_t stop_at_ = std::string::npos;  // byte at which the text ends; npos: none yet
    std::size_t n_bytes_taken_ = 0;
    std::size_t n_tokens_taken_ = 0;
};

}  // namespace specllama
