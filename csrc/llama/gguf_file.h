#pragma once

#include <string>

namespace specllama {

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a model
// that generates text. llama.cpp meets some damaged files with an assertion, which would end the
// process: what it asserts is looked at here first.
void check_gguf(const std::string& path);

}  // namespace specllama
