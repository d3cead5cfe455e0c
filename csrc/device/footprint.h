#pragma once

#include <cstdint>
#include <vector>

#include "device/context_plan.h"
#include "gguf/gguf_file.h"

namespace specllama {

// Bytes that a model takes, by its header: the weights exactly, what layers keep of texts by
// Header::layers (the states of recurrent layers at least), and what computing takes roughly.
struct Footprint {
    std::uint64_t weights = 0;
    std::uint64_t kv = 0;
    std::uint64_t states = 0;
    std::uint64_t compute = 0;
    std::vector<std::uint64_t> text = {};  // [layer of Weights]: its part of kv and states

    std::uint64_t total() const { return weights + kv + states + compute; }
};

// n_ctx: tokens of each sequence. n_logits: most rows of logits of each sequence in a decode.
Footprint footprint(const Header& header, const ContextPlan& context, int n_ctx, int n_logits);

}  // namespace specllama
