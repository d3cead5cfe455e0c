#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/constraint/byte_history.h"
#include "draft/constraint/token_bytes.h"
#include "sample/mask.h"
#include "specllama/types.h"

namespace specllama {

// Looks ahead of a text that follows a mask, byte by byte. If all tokens that the mask allows begin
// with one byte, that byte is forced; if they begin with a few, the byte that came last time in
// such a place (ByteHistory) is predicted. Predicted bytes are kept for as long as the text agrees
// with them, so each place is looked at once.
class GrammarLookahead {
 public:
    // Both must outlive this object. history: predicts by it and adds to it.
    GrammarLookahead(const TokenBytes& tokens, ByteHistory& history)
        : tokens_(&tokens), history_(&history) {}

    // Starts at the end of this text, which the mask has followed.
    void enter(std::unique_ptr<Mask> mask, std::string_view text);

    // The text goes on with a token of these bytes. Returns false if they are not the bytes
    // predicted, or if the token cannot be followed; then `enter` must be called again.
    bool follow(Token token, std::string_view bytes);

    // Looks ahead until n_most bytes are predicted, or no more can be.
    void advance(std::size_t n_most);

    // The predicted bytes, and for each one the probability that it comes; 1: forced.
    std::string_view bytes() const { return std::string_view(text_).substr(n_text_); }
    std::span<const float> confidence() const { return confidence_; }

    // Whether the next byte is forced, or only tokens without text may come. `advance` must have
    // been called since the text went on.
    bool forced() const { return confidence_.empty() ? few() && !choice() : confidence_[0] == 1; }

 private:
    void read_mask();
    // Whether a few bytes may come, and nothing else.
    bool few() const { return has_read_ && allowed_.size() <= kFew; }
    bool choice() const { return few() && allowed_.size() + (no_text_ ? 1 : 0) > 1; }
    bool predict_next();
    bool accept(Token token, std::string_view bytes);

    // Where more bytes than this may come, the text counts as free. White space is four.
    static constexpr std::size_t kFew = 4;

    const TokenBytes* tokens_;
    ByteHistory* history_;
    std::unique_ptr<Mask> mask_;     // stands after the predicted bytes
    std::string text_;               // the end of the text, then the predicted bytes
    std::size_t n_text_ = 0;         // bytes of text_ before the predicted ones
    std::vector<float> confidence_;  // [i]: of predicted byte i
    std::vector<std::optional<ByteHistory::Context>>
        contexts_;  // [i]: where it is known; none: forced
    // Valid if has_read_: the bytes that may come after the predicted ones, in ascending order (the
    // first kFew + 1 found, if there are more), and whether tokens without text may come.
    std::string allowed_;
    bool no_text_ = false;
    bool has_read_ = false;
};

}  // namespace specllama
