#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "llama/vocab.h"
#include "specllama/types.h"

namespace specllama {

// Waits for one of several texts in the text of a sequence of tokens. Special tokens count with
// their texts.
class Trigger {
 public:
    // texts: at least one, none empty.
    Trigger(const Vocab& vocab, std::vector<std::string> texts);

    // Takes the next token. Returns whether it completes one of the texts.
    bool push(Token token);

    // Whether the text so far ends with the beginning of one of the texts.
    bool begun() const;

    // The last tokens, all from the one in which the completed text begins, and maybe some before.
    TokenSpan tokens() const { return tokens_; }

    // Forgets all tokens so far and waits again.
    void restart();

    // A regular expression that matches any of the texts.
    std::string pattern() const;

 private:
    void forget();

    const Vocab* vocab_;
    std::vector<std::string> texts_;
    std::size_t longest_ = 0;
    std::string bytes_;               // the text of tokens_
    std::vector<Token> tokens_;       // the last ones, in which a text may begin
    std::vector<std::size_t> sizes_;  // [i]: bytes of tokens_[i]
};

}  // namespace specllama
