#pragma once

#include "device/kernels.h"
#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// Number of scores that attention without the flash kernel computes for a batch of n_batch tokens:
// one for each token of the batch, each head, and each of the n_seen tokens attended to.
double attention_scores(const Header& header, int n_batch, double n_seen);

// Whether context.flash_attn is automatic and flash attention is too slow for the model's heads.
//
// At different widths, flash attention gives a token the same bits more often than two matrix
// products do (see same_widths), so it stays on where it costs little, as in llama.cpp. It costs
// too much (1.2 to 5 times the time of a decode after long texts, docs/internals/attention.md) if
// the size of heads is not a multiple of its vector length: 32, 64 with AVX-512, 128 with AVX-512
// FP16. This was measured on x86-64 processors without a GPU, with one sequence, a KV memory in
// F16, heads of 64 to 128 numbers and no sliding windows. The scores must take at most 2 GiB.
bool too_slow_with_flash(const Header& header, const ModelOptions& model,
                         const ContextOptions& context, int n_ctx);

// Maximum number of rows of a decode of several sequences in one memory before its cost jumps: on a
// CPU, llama.cpp's flash attention divides 64 rows or more into blocks, and computes for a whole
// block everything that any of its rows attends to. Without such blocks, any number.
int most_rows_together(const ModelOptions& model, const ContextOptions& context);

// The widths at which attention on a CPU gives a token the same bits, with a context of n_ctx
// tokens of one sequence. Without flash attention, one row uses other kernels than several. Flash
// attention with a KV memory in F16 or F32 divides the memory among threads for a single row, from
// 257 tokens on, and works in blocks from 64 rows on; with other types it computes each row
// separately. Measured bit by bit with this version of llama.cpp (docs/internals/exactness.md).
Widths attention_widths(const ContextOptions& context, int n_ctx);

}  // namespace specllama
