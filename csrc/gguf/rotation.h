#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llama.h"

namespace specllama {

// What a model file states of how positions turn the numbers of its attention heads (RoPE).
struct Rotation {
    std::int64_t head_size = 0;  // numbers of a head; 0: there is no attention
    // How many numbers of a head are turned. Where layers with sliding windows have a count of
    // their own, it is the lower one. None: not stated, all are.
    std::optional<std::int64_t> n_turned;
    // How many pairs of numbers each of the four positions of a token turns, in models that have
    // so many; empty: not stated.
    std::vector<std::int64_t> sections;
};

// Why llama.cpp cannot turn heads that way, as the rest of a sentence about the file; "": it can.
// type: what llama_model_rope_type tells of the model.
std::string rotation_fault(const Rotation& rotation, llama_rope_type type);

}  // namespace specllama
