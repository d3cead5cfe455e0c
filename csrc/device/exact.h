#pragma once

#include "device/context_plan.h"
#include "device/kernels.h"
#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// Settles what the options leave open so that a session is exact: decoding gives the same bits at
// every width (number of tokens decoded at once) that occurs, so speculative and plain decoding
// give the same tokens, to the last one. Throws InvalidArgument, with the reason, if options.exact
// is `on` and it cannot be.
//
// Exactness takes an x86-64 processor without any other device, a KV memory with keys in BF16
// and values in F16 (or both in BF16, as latent attention needs, or both in Q8_0, with heads of a
// multiple of 32) with flash attention, and weights whose kernels are known to give a token the
// same bits at some widths, at least 1 to 7, or 2 and more (see batch_invariant_widths in
// kernels.h). Then
//   - weights go to the fastest of these kernels;
//   - no more tokens are decoded at once than these kernels allow (n_batch is lowered), and none is
//     decoded alone if that gives other bits (never_alone);
//   - sliding windows keep the whole text (whole_window), and several sequences lie apart, so that
//     none changes the order in which another one's sums are taken.
// With options.exact `automatic` this is done only if it costs nothing: the user chose such a
// KV memory, the fastest kernels give the same bits at any width, there is one sequence, and
// there is no sliding window. (Such a memory makes long prompts take up to twice as long; see
// docs/internals/exactness.md.) Otherwise weights still go to these kernels if that makes a decode
// of one token at most a tenth slower.
TargetPlan resolve_exactness(const Header& header, const SessionOptions& options);

// The widths at which decodes of a session with this plan, all of it settled, give a token the same
// bits: speculative and plain decoding can differ only where other widths are decoded. {1, 1}: of
// no two widths is that known, as with a GPU, or where several requests share a memory.
Widths same_widths(const Header& header, const TargetPlan& plan);

}  // namespace specllama
