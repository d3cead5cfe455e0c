#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/types.h"
#include "specllama/verifier.h"

namespace specllama {

class Model;

// The vocabulary of a GGUF file, without its weights. Immutable, and safe from any thread.
class Tokenizer {
 public:
    // Throws ModelError.
    explicit Tokenizer(const std::string& path);

    // As Session::tokenize.
    std::vector<Token> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true, TextRanges plain = {}) const;
    // As Session::detokenize.
    std::string detokenize(TokenSpan tokens, bool special = false) const;

    // Whether a token ends a generation.
    bool is_end(Token token) const;
    // Appends the bytes that a token adds to a text; none for special tokens. They may end inside
    // a character.
    void append_piece(Token token, std::string& out) const;

    int n_vocab() const;
    // Fingerprint of the tokenizer's type and its tokens' texts, which a corpus stores.
    std::uint64_t fingerprint() const;
    // As SessionInfo::vocabulary.
    std::uint64_t vocabulary() const;
    VocabularyTable vocabulary_table() const;
    Token bos() const;
    Token eos() const;
    FimTokens fim() const;
    std::optional<std::string> chat_template() const;

 private:
    std::shared_ptr<const Model> model_;
};

}  // namespace specllama
