#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/types.h"

struct llama_vocab;

namespace specllama {

// The model's tokenizer. Const and safe from any thread; valid as long as its Model.
class Vocab {
 public:
    explicit Vocab(const llama_vocab* vocab);

    int size() const { return size_; }
    // What begins and ends a text; kNoToken if there is none.
    Token bos() const;
    Token eos() const;
    bool is_end(Token token) const;
    bool contains(Token token) const { return token >= 0 && token < size_; }
    // Characters of its text; bytes, where the tokenizer goes by them. 255: that many, or more.
    int length(Token token) const { return lengths_[token]; }

    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const;

    // The text of a sequence, leading-space rules of the tokenizer applied. May be invalid UTF-8.
    std::string detokenize(TokenSpan tokens, bool special) const;

    // In what another vocabulary differs first, as a part of a sentence; "" when they are the same:
    // type, size, texts, and which tokens begin and end a text.
    std::string difference(const Vocab& other) const;

    // The same number for vocabularies without a difference, on every machine.
    std::uint64_t fingerprint() const;
    // The same number for those that write a text with the same tokens, as far as their type, size
    // and texts tell; they may end one with others, as a chat model does and its base model.
    std::uint64_t text_fingerprint() const;

    // The bytes one token adds to a text; none for special tokens unless `special`. Appended to
    // `out`, so that a caller's buffer can be used again. May end inside a character.
    void append_piece(Token token, std::string& out, bool special = false) const;

    FimTokens fim() const;

    // For the rest of this folder.
    const llama_vocab* get() const { return vocab_; }

 private:
    const llama_vocab* vocab_;
    int size_;
    std::vector<std::uint8_t> lengths_;  // [token]
};

}  // namespace specllama
