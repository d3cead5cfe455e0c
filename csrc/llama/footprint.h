#pragma once

#include <cstdint>

#include "llama/context_plan.h"
#include "llama/gguf_file.h"

namespace specllama {

// Bytes that a model takes, by its header: the weights exactly, the KV memory by
// Header::kv_numbers_per_token and what windows keep, the states of recurrent layers at least, and
// what computing takes roughly.
struct Footprint {
    std::uint64_t weights = 0;
    std::uint64_t kv = 0;
    std::uint64_t states = 0;
    std::uint64_t compute = 0;

    std::uint64_t total() const { return weights + kv + states + compute; }
};

// n_ctx: tokens of each sequence. n_logits: most rows of logits of each sequence in a decode.
Footprint footprint(const Header& header, const ContextPlan& context, int n_ctx, int n_logits);

}  // namespace specllama
