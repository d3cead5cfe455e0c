#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "specllama/types.h"

namespace specllama {

// The tokens that may come next, regardless of the model: a grammar, or the limit of a thought. It
// keeps track of its place in the text.
class Mask {
 public:
    // A set of tokens: token t is in it if bit t % 32 of word t / 32 is set.
    using Bits = std::span<const std::uint32_t>;
    static bool contains(Bits bits, Token token) {
        return (bits[token / 32] >> (token % 32) & 1U) != 0;
    }

    Mask() = default;
    Mask(const Mask&) = delete;
    Mask& operator=(const Mask&) = delete;
    virtual ~Mask() = default;

    // The tokens that may come next; empty: any. Valid until the next call.
    virtual Bits allowed() = 0;

    // Sets the logits [n_vocab] of all tokens that may not come next to minus infinity.
    virtual void apply(std::span<float> logits);

    // Number of leading tokens of a draft that are allowed, as far as this is known before they are
    // accepted. It is exact for the first token; for the others it may be too high.
    virtual std::size_t n_allowed(TokenSpan draft) = 0;

    bool allows(Token token) { return n_allowed({&token, 1}) == 1; }

    // Advances by a token, which must be allowed and must not end the text.
    virtual void accept(Token token) = 0;

    // Whether it restricts the next token. Before that any token may come.
    virtual bool begun() const = 0;

    // An independent copy at the same place in the text; null: it cannot be copied.
    virtual std::unique_ptr<Mask> clone() const = 0;
};

}  // namespace specllama
