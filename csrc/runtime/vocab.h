#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "specllama/types.h"
#include "text/special_texts.h"
#include "text/vocabulary.h"

struct llama_vocab;

namespace specllama {

// A model's tokenizer. Immutable and safe from any thread; valid as long as its Model.
class Vocab final : public Vocabulary {
 public:
    explicit Vocab(const llama_vocab* vocab);

    // The tokens that begin and end a text; kNoToken: none.
    Token bos() const;
    Token eos() const;
    // Length of a token's text in characters, or in bytes if the tokenizer works on bytes; 255:
    // that many or more.
    int length(Token token) const { return lengths_[token]; }

    bool ends_message(Token token) const override;

    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special,
                                TextRanges plain) const override;
    using Vocabulary::tokenize;
    std::string detokenize(TokenSpan tokens, bool special) const override;

    // The first difference of another vocabulary, as a part of a sentence; "": both have the same
    // type, size and texts, and the same tokens that begin and end a text.
    std::string difference(const Vocab& other) const;

    // A number that is equal for vocabularies without a difference, on every machine.
    std::uint64_t fingerprint() const;
    std::uint64_t text_fingerprint() const override;

    void append_piece(Token token, std::string& out, bool special) const override;
    using Vocabulary::append_piece;

    FimTokens fim() const;

    // For the rest of this folder.
    const llama_vocab* get() const { return vocab_; }

 private:
    std::string bytes(TokenSpan tokens, bool special) const;
    void check_unknown_characters(std::string_view text) const;

    const llama_vocab* vocab_;
    std::vector<std::uint8_t> lengths_;  // [token]
    // The bytes of all characters that are tokens; empty for tokenizers that do not need them.
    std::unordered_set<std::uint32_t> characters_;
    SpecialTexts control_texts_;  // of tokens that are not read in plain parts
    SpecialTexts own_texts_;      // of tokens that are special even in plain parts
    SpecialTexts special_texts_;  // of both
};

}  // namespace specllama
