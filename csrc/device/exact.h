#pragma once

#include "device/context_plan.h"
#include "device/kernels.h"
#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// Resolves open options so that a session is exact: decoding gives the same bits at every width
// (number of tokens per decode) in use, so speculative and plain decoding give exactly the same
// tokens. Throws InvalidArgument, with the reason, if options.exact is `on` and the session cannot
// be exact.
//
// Exactness requires an x86-64 processor without any other device; flash attention; a KV memory
// with keys in BF16 and values in F16, or both in BF16 (as latent attention needs), or both in Q8_0
// with a head size that is a multiple of 32; and weights whose kernels are known to give a token
// the same bits at some widths, at least 1 to 7, or 2 and more (see batch_invariant_widths in
// kernels.h). Then
//   - weights use the fastest of these kernels;
//   - decodes have no more tokens than these kernels allow (n_batch is lowered), and a token is
//     never decoded alone if that gives other bits (never_alone);
//   - sliding windows keep the whole text (whole_window), and sequences have separate memories, so
//     that none changes the order of another one's sums.
// With options.exact `automatic` this is done only if it costs nothing: the user chose such a KV
// memory, the fastest kernels give the same bits at any width, and there is one sequence and no
// sliding window. (With such a memory, long prompts take up to twice as long; see
// docs/internals/exactness.md.) Otherwise these kernels are still used if a decode of one token
// becomes at most a tenth slower.
TargetPlan resolve_exactness(const Header& header, const SessionOptions& options);

// The widths at which decodes of a session with this resolved plan give a token the same bits:
// speculative and plain decoding can differ only at other widths. {1, 1}: not known for any two
// widths, as with a GPU or if several requests share a memory.
Widths same_widths(const Header& header, const TargetPlan& plan);

}  // namespace specllama
