#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "llama/vocab.h"
#include "specllama/types.h"

namespace specllama {

// Waits for one of several texts in what a sequence of tokens says, the texts of special tokens
// included.
class Trigger {
 public:
    // texts: at least one, none empty.
    Trigger(const Vocab& vocab, std::vector<std::string> texts);

    // Takes the next token. Returns whether that completes one of the texts.
    bool push(Token token);

    // The last tokens: the one in which that text begins, perhaps some before it, and all behind.
    TokenSpan tokens() const { return tokens_; }

    // Waits anew, for what comes behind the tokens so far.
    void restart();

    // The texts, as a regular expression that fits any of them.
    std::string pattern() const;

 private:
    void forget();

    const Vocab* vocab_;
    std::vector<std::string> texts_;
    std::size_t longest_ = 0;
    std::string bytes_;               // of tokens_
    std::vector<Token> tokens_;       // as many as a text may begin in
    std::vector<std::size_t> sizes_;  // of theirs, in bytes_
};

}  // namespace specllama
