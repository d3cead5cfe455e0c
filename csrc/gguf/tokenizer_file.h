#pragma once

#include "gguf/gguf_reader.h"

namespace specllama {

// Throws ModelError unless a file's tokenizer is one that reads any prompt without failing an
// assertion of llama.cpp, without end, or with tokens that do not exist.
void check_tokenizer(const GgufReader& file);

}  // namespace specllama
