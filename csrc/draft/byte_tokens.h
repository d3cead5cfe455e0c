#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <string_view>

#include "specllama/types.h"

namespace specllama {

// For each byte a token that consists of just this byte, by which a mask is asked whether the byte
// may come; and the pairs of bytes that longer tokens begin with.
class ByteTokens {
 public:
    ByteTokens() { of.fill(kNoToken); }

    // Registers a token of the vocabulary with its bytes.
    void add(Token token, std::string_view bytes) {
        if (bytes.empty() || bytes[0] == 0) return;  // a mask does not take these as text
        const auto first = static_cast<unsigned char>(bytes[0]);
        if (bytes.size() > 1) {
            pairs_.set(pair(first, static_cast<unsigned char>(bytes[1])));
        } else if (of[first] == kNoToken) {
            of[first] = token;
        } else {
            several_.set(first);
        }
    }

    // Whether exactly one token consists of just this byte.
    bool is_one(unsigned char byte) const { return of[byte] != kNoToken && !several_[byte]; }
    // Whether any token begins with these two bytes.
    bool begins(unsigned char first, unsigned char second) const {
        return pairs_[pair(first, second)];
    }

    // [byte]: the first token added that consists of just this byte; kNoToken: there is none.
    std::array<Token, 256> of;
    // A token that ends a text; kNoToken: there is none.
    Token end = kNoToken;

 private:
    static std::size_t pair(unsigned char first, unsigned char second) {
        return std::size_t{256} * first + second;
    }

    std::bitset<256> several_;
    std::bitset<std::size_t{256} * 256> pairs_;
};

}  // namespace specllama
