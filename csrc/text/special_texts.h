#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// The texts of the special tokens. A tokenizer first searches a text for these, the longest first:
// each occurrence, from left to right, becomes that token.
//
// llama.cpp's tokenizer takes time in proportion to the square of their number in a text. Cutting a
// text between them makes it faster.
class SpecialTexts {
 public:
    SpecialTexts() = default;
    // texts: must outlive this; empty ones are ignored.
    explicit SpecialTexts(std::vector<std::string_view> texts);

    // A part of a text, and whether special texts in it become tokens.
    struct Run {
        std::string_view text;
        bool parse_special;

        bool operator==(const Run&) const = default;
    };

    // Cuts a text into runs, so that special texts with a byte in `plain` do not become tokens, and
    // all others do. It cuts only between a special text and plain text. A text that needs no cut
    // is one run.
    std::vector<Run> runs(std::string_view text, TextRanges plain) const;

    // Cuts a text into parts of about n_most occurrences each, if possible. Tokenized separately,
    // they have the same tokens as the whole: each part except the first begins with an occurrence
    // that is certain to become a token, because no other occurrence of at least its length
    // overlaps it, except a later one of the same text.
    std::vector<std::string_view> parts(std::string_view text, std::size_t n_most) const;

 private:
    struct Occurrence {
        std::size_t begin;
        std::size_t length;
    };

    std::size_t longest_at(std::string_view text) const;
    std::vector<Occurrence> find(std::string_view text) const;

    std::vector<std::string_view> texts_;  // sorted
    std::bitset<256> begins_;              // [byte]: whether some text begins with it
};

}  // namespace specllama
