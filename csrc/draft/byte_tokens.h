#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <string_view>

#include "specllama/types.h"

namespace specllama {

// The tokens by which a mask is asked for bytes, and what the others begin with.
class ByteTokens {
 public:
    ByteTokens() { of.fill(kNoToken); }

    // A token of the vocabulary has these bytes.
    void add(Token token, std::string_view bytes) {
        if (bytes.empty() || bytes[0] == 0) return;  // no text to a mask
        const auto first = static_cast<unsigned char>(bytes[0]);
        if (bytes.size() > 1) {
            pairs_.set(pair(first, static_cast<unsigned char>(bytes[1])));
        } else if (of[first] == kNoToken) {
            of[first] = token;
        } else {
            several_.set(first);
        }
    }

    // Whether one token alone is this byte and no more.
    bool is_one(unsigned char byte) const { return of[byte] != kNoToken && !several_[byte]; }
    // Whether a token begins with these two.
    bool begins(unsigned char first, unsigned char second) const {
        return pairs_[pair(first, second)];
    }

    // [byte]: a token that is this byte and no more; kNoToken: there is none.
    std::array<Token, 256> of;
    // One that ends a text; kNoToken: there is none.
    Token end = kNoToken;

 private:
    static std::size_t pair(unsigned char first, unsigned char second) {
        return std::size_t{256} * first + second;
    }

    std::bitset<256> several_;
    std::bitset<std::size_t{256} * 256> pairs_;
};

}  // namespace specllama
