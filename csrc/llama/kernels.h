#pragma once

#include <string>

#include "ggml-backend.h"
#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// Who multiplies a weight matrix on the CPU: llama.cpp's kernels for the layout that the file has,
// for one that it repacks weights to as it loads them, or for Intel's AMX tiles.
enum class Kernel { plain, repacked, amx };

// The kernel for a matrix: the fastest that there is on this machine, or the fastest of those that
// give a token the same bits however many are decoded at once; plain where there is none.
//
// AMX's kernels are left out where they would be wrong, with this version of llama.cpp. They take
// the activations for one contiguous matrix, and of several they write all but the first to
// elsewhere: so not inside recurrent layers. And of weights in slices (the heads of latent
// attention) they pack the first alone. Nor are they used where they crash (see amx.h).
Kernel kernel_for(const Matrix& matrix, Kernels wanted);

// What llama.cpp takes, left to itself.
Kernel default_kernel(const Matrix& matrix);

// How many tokens may be decoded at once, at least and at most, for a token to get the same bits
// whatever their number. {1, 1}: that is not known of any number.
//
// Measured bit by bit with this version of llama.cpp, on x86-64 processors; docs/exactness.md says
// how.
struct Widths {
    int least = 1;
    int most = 1;
};
inline constexpr int kAnyWidth = 1 << 30;
Widths same_bits(Kernel kernel, ggml_type type);

// The same of all matrices of a model.
Widths same_bits(const Header& header, Kernels wanted);

// Where a kernel's weights lie; null: there is no such kernel for the matrix.
ggml_backend_buffer_type_t buffer_type(Kernel kernel, const Matrix& matrix);

// Which kernels multiply how much of a model's weights, e.g. "AMX 76 %, plain 24 %".
std::string describe_kernels(const Header& header, Kernels wanted);

}  // namespace specllama
