#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Gathers tokenized texts and writes them as a corpus file; see corpus_file.h.
class CorpusBuilder {
 public:
    // max_tokens: limit on the stored tokens, markers included: one before the first text and one
    // after each. Tokens beyond it are left out. Throws InvalidArgument unless it is from 1 to
    // corpus_file::kMaxTokens.
    explicit CorpusBuilder(std::int64_t max_tokens);

    // Appends tokens to the current text, as far as there is room. Ids must be 0 or more.
    void append(TokenSpan tokens);
    // Ends the current text; what is appended next is another one. A text without tokens does not
    // count.
    void end_text();

    bool full() const { return tokens_.size() + 1 >= max_tokens_; }
    std::size_t n_tokens() const { return tokens_.size(); }
    std::size_t n_texts() const { return n_texts_; }

    // Ends the current text and writes the file. n_vocab: size of the tokens' vocabulary;
    // vocabulary: its Vocab::text_fingerprint. Throws std::system_error when the file cannot be
    // written; a partial file may be left.
    void write(const std::string& path, int n_vocab, std::uint64_t vocabulary);

 private:
    std::size_t max_tokens_;
    std::vector<Token> tokens_;
    std::size_t n_texts_ = 0;
};

}  // namespace specllama
