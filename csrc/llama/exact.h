#pragma once

#include <string>

#include "llama/model.h"
#include "specllama/config.h"

namespace specllama {

// Why decoding does not give the same bits whatever the width of a batch, as a part of a sentence;
// "" when it does. Then speculative and plain decoding give the same tokens, to the last one.
//
// The table, measured with this version of llama.cpp: on x86-64 processors without any other
// device, weight matrices of type Q8_0 or Q4_0, KV memory of type Q8_0, flash attention on, and
// weights not repacked. What is not in the table may be exact, too, but is not claimed to be.
std::string inexact_because(const Model& model, const ContextOptions& options);

}  // namespace specllama
