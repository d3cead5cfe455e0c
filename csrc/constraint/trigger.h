#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vocab.h"
#include "specllama/types.h"

namespace specllama {

// Searches the text of a sequence of tokens for one of several texts. Special tokens have their
// texts, too.
class Trigger {
 public:
    // texts: at least one, none empty.
    Trigger(const Vocab& vocab, std::vector<std::string> texts);

    // Adds the next token. Returns whether it completes one of the texts.
    bool push(Token token);

    // Whether the text so far ends with the beginning of one of the texts.
    bool begun() const;

    // The found text and the rest of its last token. Valid until the next call.
    std::string_view found() const { return bytes_; }

    // Forgets the text so far and searches again.
    void restart() { bytes_.clear(); }

 private:
    void forget();

    const Vocab* vocab_;
    std::vector<std::string> texts_;
    std::size_t longest_ = 0;
    // The end of the text, in which one of texts_ begins or may begin.
    std::string bytes_;
};

}  // namespace specllama
