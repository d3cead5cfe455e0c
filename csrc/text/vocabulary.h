#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specllama/types.h"
#include "specllama/verifier.h"

namespace specllama {

// The tokens of a target, as requests and drafters need them. Immutable and safe from any thread.
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

    // Whether a message of a conversation ends with this token: a token that ends a text, or
    // another one that chat templates write there.
    virtual bool ends_message(Token token) const { return is_end(token); }

    // Appends the bytes that a token adds to a text to `out`, so that a caller can reuse its
    // buffer; none for special tokens unless `special`. May end inside a character.
    virtual void append_piece(Token token, std::string& out, bool special) const = 0;
    void append_piece(Token token, std::string& out) const { append_piece(token, out, false); }

    // plain: parts of the text in which control tokens are not read, even with parse_special.
    // Throws InvalidArgument for a text that cannot be tokenized or would take minutes, and for
    // parts outside the text.
    virtual std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special,
                                        TextRanges plain) const = 0;
    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const {
        return tokenize(text, add_special, parse_special, {});
    }

    // The text of a sequence, by the tokenizer's rules for leading spaces; invalid UTF-8 becomes
    // U+FFFD. special: include the texts of special tokens. Throws InvalidArgument, like `check`.
    virtual std::string detokenize(TokenSpan tokens, bool special) const = 0;

    // A number that is equal for vocabularies with the same type, size and texts, which write a
    // text with the same tokens. The tokens that end a text may differ, as between a chat model and
    // its base model.
    virtual std::uint64_t text_fingerprint() const = 0;

    // All of this except the tokenizer.
    VocabularyTable table() const;

    // Throws InvalidArgument for the first token that the vocabulary does not contain. what: where
    // the tokens are, for the message, e.g. "prompt"; "": not said.
    void check(TokenSpan tokens, const std::string& what = "") const;

 private:
    int size_;
    std::vector<Token> ends_;
};

}  // namespace specllama
