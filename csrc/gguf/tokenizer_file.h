#pragma once

#include "gguf/gguf_reader.h"

namespace specllama {

// Throws ModelError if some prompt would make the file's tokenizer fail an assertion of llama.cpp,
// loop forever, or return tokens that do not exist.
void check_tokenizer(const GgufReader& file);

}  // namespace specllama
