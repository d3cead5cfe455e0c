#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// Collects tokenized texts and writes them as a corpus file (corpus_file.h).
class CorpusBuilder {
 public:
    // max_tokens: most tokens stored, including markers (one before the first text and one after
    // each). Further tokens are left out. Throws InvalidArgument unless it is from 1 to
    // corpus_file::kMaxTokens.
    explicit CorpusBuilder(std::int64_t max_tokens);

    // Appends tokens to the current text until the builder is full. Ids must be at least 0.
    void append(TokenSpan tokens);
    // Ends the current text; the next tokens begin another one. An empty text is not counted.
    void end_text();

    bool full() const { return tokens_.size() + 1 >= max_tokens_; }
    std::size_t n_tokens() const { return tokens_.size(); }
    std::size_t n_texts() const { return n_texts_; }

    // Ends the current text and writes the file. n_vocab: size of the vocabulary; vocabulary: its
    // Vocab::text_fingerprint. Throws std::system_error when the file cannot be written; a partial
    // file may remain.
    void write(const std::string& path, int n_vocab, std::uint64_t vocabulary);

 private:
    std::size_t max_tokens_;
    std::vector<Token> tokens_;
    std::size_t n_texts_ = 0;
};

}  // namespace specllama
