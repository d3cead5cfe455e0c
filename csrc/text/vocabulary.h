#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// The tokens of a target: what requests and drafters need to know of them. Const and safe from any
// thread.
class Vocabulary {
 public:
    // ends: the tokens that end a text.
    Vocabulary(int size, std::vector<Token> ends) : size_(size), ends_(std::move(ends)) {}
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;
    virtual ~Vocabulary() = default;

    int size() const { return size_; }
    bool contains(Token token) const { return token >= 0 && token < size_; }
    TokenSpan ends() const { return ends_; }
    bool is_end(Token token) const { return std::ranges::find(ends_, token) != ends_.end(); }

    // Appends the bytes that a token adds to a text to `out`, so that a caller can use its buffer
    // again; none for special tokens unless `special`. May end inside a character.
    virtual void append_piece(Token token, std::string& out, bool special) const = 0;
    void append_piece(Token token, std::string& out) const { append_piece(token, out, false); }

    // Throws InvalidArgument for a text that cannot be tokenized, or only in minutes.
    virtual std::vector<Token> tokenize(std::string_view text, bool add_special,
                                        bool parse_special) const = 0;

 private:
    int size_;
    std::vector<Token> ends_;
};

}  // namespace specllama
