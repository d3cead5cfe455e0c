#include "text/utf8.h"

namespace specllama {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
    std::size_t length = 0;  // bytes of the character, or of the invalid sequence
    enum { valid, cut, invalid } state = invalid;
};

// The first character of `bytes`, by the table of well-formed sequences of the Unicode Standard
// (section 3.9, table 3-7). `bytes` is not empty.
Character front(std::string_view bytes) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x80) return {1, Character::valid};
    if (lead < 0xC2 || lead > 0xF4) return {1, Character::invalid};
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // Bounds of the second byte: no overlong forms, no surrogates, nothing past U+10FFFF.
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    for (std::size_t i = 1; i < length; ++i) {
        if (i == bytes.size()) return {i, Character::cut};
        if (at(i) < low || at(i) > high) return {i, Character::invalid};
        low = 0x80;
        high = 0xBF;
    }
    return {length, Character::valid};
}

}  // namespace

std::size_t append_utf8(std::string_view bytes, bool final, std::string& out) {
    std::size_t taken = 0;
    while (taken < bytes.size()) {
        const Character character = front(bytes.substr(taken));
        if (character.state == Character::cut && !final) break;
        if (character.state == Character::valid)
            out.append(bytes.substr(taken, character.length));
        else
            out.append(kReplacement);
        taken += character.length;
    }
    return taken;
}

std::size_t find_invalid_utf8(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const Character character = front(bytes.substr(at));
        if (character.state != Character::valid) return at;
        at += character.length;
    }
    return std::string_view::npos;
}

}  // namespace specllama
