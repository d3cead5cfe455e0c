#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/types.h"

namespace specllama {

class Model;

// The vocabulary of a GGUF file, without its weights. Const, and safe from any thread.
class Tokenizer {
 public:
    // Throws ModelError.
    explicit Tokenizer(const std::string& path);

    // Token ids of a UTF-8 text; the texts of special tokens become those tokens.
    std::vector<Token> tokenize(std::string_view text) const;

    int n_vocab() const;
    // What a corpus of its tokens is marked with.
    std::uint64_t fingerprint() const;

 private:
    std::shared_ptr<const Model> model_;
};

}  // namespace specllama
