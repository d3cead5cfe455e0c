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

// Looks ahead of a text that follows a mask, byte by byte. A byte that alone may come is forced;
// where a few may, it goes on with the one that came last time in such a place. What is foreseen is
// kept for as long as the text goes on like that, so that each place is asked about once.
class Scout {
 public:
    // Both must outlive it. habits: which it goes by, and adds to.
    Scout(const ByteTokens& tokens, Habits& habits);

    // Stands at the end of this text, which the mask has followed.
    void enter(std::unique_ptr<Mask> mask, std::string_view text);

    // The text goes on with a token of these bytes. False: otherwise than foreseen, or by a token
    // that cannot be followed; then it must be entered anew.
    bool follow(Token token, std::string_view bytes);

    // Foresees so many bytes, if so many can be.
    void look(std::size_t n_most);

    // What is foreseen: bytes, and how sure each of them is, 1: forced.
    std::string_view bytes() const { return std::string_view(text_).substr(n_text_); }
    std::span<const float> confidence() const { return confidence_; }

    // Whether one token alone seems to be left, or the end: no token begins with the byte that must
    // come and one that may come then. Bytes that were not asked about are left to the mask.
    bool seems_certain() const;

    // Whether it took too long, and is better not asked again: an ambiguous mask may take ever
    // longer.
    bool tired() const { return tired_; }

 private:
    void ask();
    bool is_habitual() const { return has_asked_ && left_.size() > 1 && left_.size() <= kFew; }
    bool foresee_next();
    bool accept(Token token, std::string_view bytes);
    unsigned char byte_of(Token token) const;

    // Where more bytes may come, the text is free.
    static constexpr std::size_t kFew = 4;

    const ByteTokens& tokens_;
    Habits& habits_;
    // All tokens that it asks about, those first that tell most.
    std::array<std::vector<Token>, 4> questions_;
    std::unique_ptr<Mask> mask_;                        // at the end of what is foreseen
    std::string text_;                                  // the end of the text, and what is foreseen
    std::size_t n_text_ = 0;                            // bytes of it that are text
    std::vector<float> confidence_;                     // [i]: of byte i of what is foreseen
    std::vector<std::optional<Habits::Place>> places_;  // [i]: where a habit foresaw it
    // What may come behind it: all if they are few, else some; empty: not asked yet, or nothing.
    std::vector<Token> left_;
    bool has_asked_ = false;
    bool tired_ = false;
};

}  // namespace specllama
