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
    // Checks the grammar and its triggers: none is empty, holds a NUL character or has more than
    // 4096 bytes, and all together have 65536 bytes at most. A grammar that was read here is
    // remembered, so that `make` takes no time. Throws InvalidArgument.
    void check(const Vocab& vocab, const SamplingOptions& options);

    // Returns the mask for a request: a grammar, the limit of a thought, or both. Null: any token
    // may come. The mask uses vocab. Throws InvalidArgument if the grammar cannot be read.
    std::unique_ptr<Mask> make(const Vocab& vocab, const SamplingOptions& options);

 private:
    std::shared_ptr<GrammarCompiler> compiler(const Vocab& vocab);

    std::mutex mutex_;
    std::shared_ptr<GrammarCompiler> compiler_;  // made when the first grammar is read
};

}  // namespace specllama
