#pragma once

#include <cstdint>
#include <string>

#include "llama/gguf_file.h"
#include "llama/model.h"
#include "specllama/config.h"

namespace specllama {

// Bytes that a model takes, by its header: weights exactly, the KV memory and the states of
// recurrent layers at least, what computing takes about.
struct Footprint {
    std::uint64_t weights = 0;
    std::uint64_t kv = 0;
    std::uint64_t states = 0;
    std::uint64_t compute = 0;

    std::uint64_t total() const { return weights + kv + states + compute; }
};

// n_ctx and n_logits: tokens, and most rows of logits in a decode, of each of the sequences.
Footprint footprint(const Header& header, const ContextOptions& context, int n_ctx, int n_logits);

// Compares what the target, and the draft model if there is one (null: none), take with what the
// device that will hold them has free. Where options.context.n_ctx is left open, it becomes the
// default or, with a notice, what fits; where flash_attn is, it becomes off where that is faster
// and its scores fit, too. Throws OutOfMemory, with the numbers, when it does not fit. A draft
// model larger than the target gets a warning.
void settle_memory(const Header& target, const Header* draft, SessionOptions& options);

// Compares what another context of a model that is loaded takes with what its device has free.
// Throws OutOfMemory, with the numbers, who wants it, and what to do then, when it does not fit.
void check_memory(const Model& model, const ContextOptions& context, int n_logits,
                  const std::string& who, const std::string& advice);

}  // namespace specllama
