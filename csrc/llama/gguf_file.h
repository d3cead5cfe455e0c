#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// What the header of a model file says, where it is needed before the file is loaded.
struct Header {
    // The first matrix of a type whose products depend on how many are computed at once, and of
    // one where they do only between one and more; "" if there is none.
    std::string inexact;
    std::string inexact_alone;
    // Whether there are matrices that llama.cpp may store in another order to be faster.
    bool repackable = false;
    // Numbers of an attention head; 0 without attention.
    int head_size = 0;
    bool slides = false;  // whether there are sliding windows
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
};

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a model
// that generates text. llama.cpp meets some damaged files with an assertion, which would end the
// process: what it asserts is looked at here first.
Header check_gguf(const std::string& path);

}  // namespace specllama
