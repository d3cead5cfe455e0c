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
    // max_tokens: what comes after so many is left out; each text counts as one token more than it
    // has. Throws InvalidArgument when it is not from 1 to corpus_file::kMaxTokens.
    explicit CorpusBuilder(std::int64_t max_tokens);

    // Takes in the next tokens of the current text, as far as there is room. Ids are 0 or more.
    void append(TokenSpan tokens);
    // What is appended next is another text. Texts without a token do not count.
    void end_text();

    bool full() const { return tokens_.size() + 1 >= max_tokens_; }
    std::size_t n_tokens() const { return tokens_.size(); }
    std::size_t n_texts() const { return n_texts_; }

    // Ends the current text and writes everything. n_vocab and vocabulary: of the tokens, see
    // Vocab. Throws Error when the file cannot be written; then something may be there.
    void write(const std::string& path, int n_vocab, std::uint64_t vocabulary);

 private:
    std::size_t max_tokens_;
    std::vector<Token> tokens_;
    std::size_t n_texts_ = 0;
};

}  // namespace specllama
