#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/byte_tokens.h"
#include "draft/habits.h"
#include "sample/mask.h"
#include "specllama/types.h"

namespace specllama {

// Looks ahead of a text that follows a mask, byte by byte. If the mask allows one byte only, that
// byte is forced; if it allows a few, the scout goes on with the byte that came last time in such a
// place (Habits). Foreseen bytes are kept for as long as the text agrees with them, so each place
// is asked about once.
class Scout {
 public:
    // Both must outlive the scout. habits: it goes by them and adds to them.
    Scout(const ByteTokens& tokens, Habits& habits);

    // Starts at the end of this text, which the mask has followed.
    void enter(std::unique_ptr<Mask> mask, std::string_view text);

    // The text goes on with a token of these bytes. Returns false if they are not the bytes
    // foreseen, or if the token cannot be followed; then `enter` must be called again.
    bool follow(Token token, std::string_view bytes);

    // Looks ahead until n_most bytes are foreseen, or no more can be.
    void look(std::size_t n_most);

    // The foreseen bytes, and for each one the probability that it comes; 1: forced.
    std::string_view bytes() const { return std::string_view(text_).substr(n_text_); }
    std::span<const float> confidence() const { return confidence_; }

    // Whether only one token, or only the end, seems to be left: the next byte is forced, one token
    // consists of just this byte, and none begins with this byte and one that may follow it. Only
    // the mask can tell for sure: not every byte was asked about.
    bool seems_certain() const;

    // Whether a step took too long, so that the scout is better not asked again: an ambiguous mask
    // may take ever longer.
    bool tired() const { return tired_; }

 private:
    void ask();
    bool is_habitual() const { return has_asked_ && left_.size() > 1 && left_.size() <= kFew; }
    bool foresee_next();
    bool accept(Token token, std::string_view bytes);
    unsigned char byte_of(Token token) const;

    // Where more bytes than this may come, the text counts as free.
    static constexpr std::size_t kFew = 4;

    const ByteTokens& tokens_;
    Habits& habits_;
    // All tokens that the mask is asked about; groups that tell more come first.
    std::array<std::vector<Token>, 4> questions_;
    std::unique_ptr<Mask> mask_;     // stands after the foreseen bytes
    std::string text_;               // the end of the text, then the foreseen bytes
    std::size_t n_text_ = 0;         // bytes of text_ before the foreseen ones
    std::vector<float> confidence_;  // [i]: of foreseen byte i
    std::vector<std::optional<Habits::Place>> places_;  // [i]: its habit's place; none: forced
    // Tokens that may come after the foreseen bytes: all of them if at most kFew, else some. Valid
    // if has_asked_.
    std::vector<Token> left_;
    bool has_asked_ = false;
    bool tired_ = false;
};

}  // namespace specllama
