#include "constraint/matcher.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "specllama/error.h"

namespace specllama {

namespace {

const std::uint32_t* ids(TokenSpan tokens) {
    static_assert(sizeof(Token) == sizeof(std::uint32_t));
    return reinterpret_cast<const std::uint32_t*>(tokens.data());
}

}  // namespace

Matcher Matcher::clone() const { return Matcher(llguidance().clone_matcher(matcher_.get())); }

std::size_t Matcher::n_words() const {
    return llguidance().matcher_get_mask_byte_size(matcher_.get()) / sizeof(std::uint32_t);
}

void Matcher::mask(std::span<std::uint32_t> mask) {
    const std::int32_t result =
        llguidance().matcher_compute_mask_into(matcher_.get(), mask.data(), mask.size_bytes());
    // The text could continue, but no token of the vocabulary fits.
    if (result < 0 && error() != nullptr && std::string_view(error()).starts_with("NoExtension"))
        std::ranges::fill(mask, 0);
    else
        checked(result);
}

std::size_t Matcher::n_allowed(TokenSpan tokens) {
    return checked(
        llguidance().matcher_validate_tokens(matcher_.get(), ids(tokens), tokens.size()));
}

void Matcher::consume(TokenSpan tokens) {
    checked(llguidance().matcher_consume_tokens(matcher_.get(), ids(tokens), tokens.size()));
}

std::int32_t Matcher::checked(std::int32_t result) const {
    if (result >= 0) return result;
    const char* const why = error();
    const std::string text = why == nullptr ? "" : why;
    throw DecodeError("The grammar became too complex to follow (" +
                      text.substr(0, text.find('\n')) + "); simplify it.");
}

}  // namespace specllama
