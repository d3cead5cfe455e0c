#pragma once

#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// Settles what the options leave open for the sake of exactness: where decoding gives the same bits
// whatever the width of a batch, speculative and plain decoding give the same tokens, to the last
// one. Returns whether it will. Throws InvalidArgument, with the reason, where that is demanded and
// cannot be had.
//
// It takes an x86-64 processor without any other device, a KV memory of type Q8_0 (heads a multiple
// of 32) with flash attention, and weights whose kernels are known to give a token the same bits
// over some widths, 1 to 7 at least, or 2 and more (see same_bits in kernels.h). Then
//   - weights go to the fastest of such kernels;
//   - no more tokens are decoded at once than these allow (n_batch is lowered), and none alone
//     where that gives other bits (never_alone);
//   - sliding windows keep the whole text (whole_window), and several sequences lie apart, so that
//     none changes the order in which another one's sums are taken.
// automatic: only where none of that costs anything: the KV memory is of type Q8_0 by the user's
// own wish, the fastest kernels are such kernels at any width, there is one sequence, and no
// window. (By itself the Q8_0 memory makes long prompts take up to twice as long; see
// docs/exactness.md.)
bool settle_exactness(const Header& header, SessionOptions& options);

}  // namespace specllama
