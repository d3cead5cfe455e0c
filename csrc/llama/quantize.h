#pragma once

#include <string>

#include "ggml.h"
#include "specllama/session_options.h"

namespace specllama {

// Writes a copy of a model's file in which all matrices have one type, also those that were already
// quantized. Of a split model, `from` is the first part; the copy is one file.
//
// type: q4_0, q4_1, q8_0 or iq4_nl. progress: may be empty. Throws ModelError with the reason (the
// content of `to` is then undefined), Interrupted, and what `progress` throws.
void quantize(const std::string& from, const std::string& to, ggml_type type, int n_threads,
              const ProgressFunction& progress);

}  // namespace specllama
