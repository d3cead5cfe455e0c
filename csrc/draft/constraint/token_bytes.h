#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// The first byte of each token of a vocabulary, and for each byte the token that is only this byte.
class TokenBytes {
 public:
    // Instead of the first byte, for tokens without text, such as an end-of-text token.
    static constexpr int kNoText = 256;

    TokenBytes() { alone_.fill(kNoToken); }

    // Adds the next token of the vocabulary, with its bytes.
    void add(std::string_view bytes) {
        const int first = bytes.empty() ? kNoText : static_cast<unsigned char>(bytes[0]);
        if (bytes.size() == 1 && alone_[first] == kNoToken)
            alone_[first] = static_cast<Token>(first_.size());
        first_.push_back(static_cast<short>(first));
    }

    std::size_t size() const { return first_.size(); }
    int first(Token token) const { return first_[token]; }
    // kNoToken: none.
    Token alone(char byte) const { return alone_[static_cast<unsigned char>(byte)]; }

 private:
    std::vector<short> first_;
    std::array<Token, 256> alone_;
};

}  // namespace specllama
