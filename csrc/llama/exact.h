#pragma once

#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// Settles what the options leave open for the sake of exactness: where decoding gives the same bits
// whatever the width of a batch, speculative and plain decoding give the same tokens, to the last
// one. Returns whether it will. Throws InvalidArgument, with the reason, where that is demanded and
// cannot be had.
//
// The table, measured with this version of llama.cpp, on x86-64 processors without any other
// device, with a KV memory of type Q8_0 (heads a multiple of 32) and flash attention; every matrix
// counts, and the strictest one decides (see same_bits in kernels.h, and docs/exactness.md):
//
//     weight matrices                        exact                                   automatic
//     Q8_0, Q4_0, Q4_1, Q5_0, Q5_1           always                                  yes
//     IQ4_NL                                 always; as floats if not repacked       if repacked
//     Q4_K, Q5_K, Q6_K, IQ4_XS, F16 by AMX   always                                  yes
//     Q2_K to Q6_K, IQ4_XS otherwise         at most 7 tokens at once, not repacked  no
//     F32, F16, BF16 otherwise               unless decoded alone: see never_alone   no
//
// Sliding windows must keep the whole text (see whole_window): only on demand.
// What is not in the table may be exact, too, but is not claimed to be. Several sequences must lie
// apart, so that none changes the order in which another one's sums are taken: only on demand.
bool settle_exactness(const Header& header, SessionOptions& options);

}  // namespace specllama
