#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "constraint/llguidance.h"
#include "constraint/matcher.h"
#include "runtime/vocab.h"
#include "specllama/generate_options.h"
#include "specllama/types.h"

namespace specllama {

// Compiles grammars for one vocabulary. Safe from any thread.
class GrammarCompiler {
 public:
    // The compiler for a vocabulary. Making one takes some tenths of a second for 150,000 tokens,
    // so all users of equal vocabularies share one.
    static std::shared_ptr<GrammarCompiler> of(const Vocab& vocab);

    explicit GrammarCompiler(const Vocab& vocab);

    // Returns a matcher at the beginning of a text. The last grammars are cached. Throws
    // InvalidArgument if the grammar is invalid or too large.
    Matcher compile(const std::string& grammar, GrammarSyntax syntax);

    // Some tokens with these bytes; bytes without a token are left out at the end.
    std::vector<Token> tokenize(std::string_view bytes) const;

 private:
    struct Free {
        void operator()(LlgTokenizer* tokenizer) const { llguidance().free_tokenizer(tokenizer); }
    };
    struct Compiled {
        std::string grammar;
        GrammarSyntax syntax;
        Matcher matcher;
    };

    Matcher read(const std::string& grammar, GrammarSyntax syntax) const;

    std::unique_ptr<LlgTokenizer, Free> tokenizer_;
    std::mutex mutex_;
    std::list<Compiled> compiled_;  // the most recently used first
};

}  // namespace specllama
