#pragma once

#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// How many scores attention without the flash kernel computes for a batch of n_batch tokens: one
// for each token of the batch, each head, and each of the n_seen tokens that it sees.
double attention_scores(const Header& header, int n_batch, double n_seen);

// Whether context.flash_attn is automatic and the model is decoded faster without flash attention.
// By what was measured (docs/attention.md) that is so on x86-64 processors without a GPU, with one
// sequence, a KV memory in F16, heads of 96 to 128 numbers (64 to 128 with AVX-512 FP16) and no
// sliding windows, as long as the scores take at most 2 GiB.
bool faster_without_flash(const Header& header, const ModelOptions& model,
                          const ContextOptions& context, int n_ctx);

// Most rows of a decode of several sequences in one memory, behind which it suddenly costs more: on
// a CPU llama.cpp's flash attention puts 64 rows or more together in blocks, and computes for a
// whole block what any of its rows sees. Without that, any number.
int most_rows_together(const ModelOptions& model, const ContextOptions& context);

}  // namespace specllama
