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

// Looks ahead of a text that follows a mask, byte by byte. If all allowed tokens begin with the
// same byte, that byte is forced. If they begin with one of a few bytes, the byte that came last in
// the same context (ByteHistory) is predicted. Predicted bytes are kept while the text agrees with
// them, so each position is computed once.
class GrammarLookahead {
 public:
    // Both must outlive this object. history: used for predictions, and updated.
    GrammarLookahead(const TokenBytes& tokens, ByteHistory& history)
        : tokens_(&tokens), history_(&history) {}

    // Starts at the end of `text`, which the mask has already followed.
    void enter(std::unique_ptr<Mask> mask, std::string_view text);

    // Continues the text with a token of these bytes. Returns false if other bytes were predicted,
    // or if the mask refuses the token; then `enter` must be called again.
    bool follow(Token token, std::string_view bytes);

    // Looks ahead until n_most bytes are predicted, or none can be added.
    void advance(std::size_t n_most);

    // The predicted bytes, and for each one the probability that it comes; 1: forced.
    std::string_view bytes() const { return std::string_view(text_).substr(n_text_); }
    std::span<const float> confidence() const { return confidence_; }

    // Whether the next byte is forced, or only tokens without text are allowed. Requires a call of
    // `advance` since the text grew.
    bool forced() const { return confidence_.empty() ? few() && !choice() : confidence_[0] == 1; }

 private:
    void read_mask();
    // Whether at most kFew different bytes may come.
    bool few() const { return has_read_ && allowed_.size() <= kFew; }
    bool choice() const { return few() && allowed_.size() + (no_text_ ? 1 : 0) > 1; }
    bool predict_next();
    bool accept(Token token, std::string_view bytes);

    // If more bytes than this may come, the text counts as free. White space has four.
    static constexpr std::size_t kFew = 4;

    const TokenBytes* tokens_;
    ByteHistory* history_;
    std::unique_ptr<Mask> mask_;     // its state after the predicted bytes
    std::string text_;               // the end of the text, then the predicted bytes
    std::size_t n_text_ = 0;         // bytes of text_ before the predicted ones
    std::vector<float> confidence_;  // [i]: of predicted byte i
    std::vector<std::optional<ByteHistory::Context>>
        contexts_;  // [i]: where it is known; none: forced
    // Valid if has_read_: the bytes that may come after the predicted ones, in ascending order (of
    // more than kFew + 1, the first kFew + 1 found), and whether tokens without text may come.
    std::string allowed_;
    bool no_text_ = false;
    bool has_read_ = false;
};

}  // namespace specllama
