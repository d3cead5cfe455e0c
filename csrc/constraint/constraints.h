#pragma once

#include <memory>
#include <mutex>

#include "constraint/grammar_compiler.h"
#include "runtime/vocab.h"
#include "sample/mask.h"
#include "specllama/generate_options.h"

namespace specllama {

// Makes the masks of requests. Safe from any thread.
class Constraints {
 public:
    // Checks the grammar and its triggers: a trigger must not be empty, contain a NUL character or
    // have more than 4096 bytes, and all together may have at most 65536 bytes. The grammar is
    // compiled and cached, so that `make` is fast. Throws InvalidArgument.
    void check(const Vocab& vocab, const SamplingOptions& options);

    // Returns the mask for a request: a grammar, the limit of a thought, or both. Null: any token
    // may come. vocab must outlive the mask. Throws InvalidArgument if the grammar cannot be read.
    std::unique_ptr<Mask> make(const Vocab& vocab, const SamplingOptions& options);

 private:
    std::shared_ptr<GrammarCompiler> compiler(const Vocab& vocab);

    std::mutex mutex_;
    std::shared_ptr<GrammarCompiler> compiler_;  // made for the first grammar
};

}  // namespace specllama
