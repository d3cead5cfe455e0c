#pragma once

#include <string>

namespace specllama {

// What the weights of a model file are like.
struct Weights {
    // The first matrix of a type whose products depend on how many are computed at once; "" if
    // there is none.
    std::string inexact;
    // Whether there are matrices that llama.cpp may store in another order to be faster.
    bool repackable = false;
};

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a model
// that generates text. llama.cpp meets some damaged files with an assertion, which would end the
// process: what it asserts is looked at here first.
Weights check_gguf(const std::string& path);

}  // namespace specllama
