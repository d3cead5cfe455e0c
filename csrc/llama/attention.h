#pragma once

#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// Numbers of the matrices that attention without the flash kernel makes of a batch: a row for each
// token and head, with a score for each of the tokens that it sees.
double attention_scores(const Header& header, const ContextOptions& context, int n_ctx);

// Whether a model is decoded faster without flash attention, which is left open then. As far as it
// has been measured (docs/attention.md): on x86-64 processors, with one sequence, a KV memory in
// F16, heads of 96 to 128 numbers (of 64 to 128 where there is AVX-512 FP16) and no sliding
// windows, and while the scores take 2 GiB at most.
bool faster_without_flash(const Header& header, const ModelOptions& model,
                          const ContextOptions& context, int n_ctx);

}  // namespace specllama
