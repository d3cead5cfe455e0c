#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"

namespace specllama {

// A weight matrix, or as many in slices as there are experts or heads.
struct Matrix {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    std::int64_t n_in = 0;
    std::int64_t n_out = 0;
    std::int64_t n_slices = 1;
    bool of_experts = false;  // a slice for each
    bool recurrent = false;   // in a recurrent layer, and not of its feed-forward part
    std::uint64_t n_bytes() const;
};

// What the header of a model file says, where it is needed before the file is loaded.
struct Header {
    std::string architecture;
    // Whether there are other files, of whose matrices nothing is said here.
    bool is_split = false;
    // Those that activations are multiplied with; tables that rows are taken from are none.
    std::vector<Matrix> matrices;
    // Attention heads of a layer, and the numbers of one; 0 without attention.
    int n_heads = 0;
    int head_size = 0;
    bool slides = false;  // whether there are sliding windows
    bool long_rope =
        false;  // whether positions are turned otherwise in long contexts than in short
    int n_ctx_train = 0;
    std::uint64_t weight_bytes = 0;
    // Numbers that the KV memory of one token takes at least: sliding windows and recurrent layers
    // keep less than every token.
    double kv_numbers_per_token = 0;
    // Numbers of the state that the recurrent layers keep of a sequence, and whether llama.cpp
    // keeps snapshots of it for the architecture.
    double state_numbers = 0;
    bool has_snapshots = false;
    // Numbers that computing one token takes at once, about.
    double compute_numbers_per_token = 0;
    int n_vocab = 0;
    // Numbers of the states that a head reads of its target; 0: it is no head.
    int target_width = 0;
};

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a model
// that generates text. llama.cpp meets some damaged files with an assertion, which would end the
// process: what it asserts is looked at here first.
Header check_gguf(const std::string& path);

}  // namespace specllama
