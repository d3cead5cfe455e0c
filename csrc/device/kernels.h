#pragma once

#include <string>

#include "ggml-backend.h"
#include "gguf/gguf_file.h"

namespace specllama {

// llama.cpp's kernels that multiply with a weight matrix on the CPU. plain: weights as in the file;
// repacked: a layout that llama.cpp creates at loading; amx: Intel's AMX tiles.
enum class Kernel { plain, repacked, amx };

// Which of them are used for a model's weights: the fastest, or the fastest of those that give a
// token the same bits at any width (number of tokens per decode).
enum class Kernels { fastest, batch_invariant };

// The kernel for a matrix: the fastest on this machine, or, with Kernels::batch_invariant, the
// fastest that gives a token the same bits at any width; plain if there is none.
//
// AMX kernels are not used where they are wrong in this version of llama.cpp: inside recurrent
// layers, since they treat several activation matrices as one contiguous matrix and write all
// products but the first to the wrong place; and for weights in slices (the heads of latent
// attention), since they pack only the first slice. They are not used if they crash, either (see
// amx.h).
Kernel kernel_for(const Matrix& matrix, Kernels wanted);

// The kernel that llama.cpp chooses by default.
Kernel default_kernel(const Matrix& matrix);

// Widths (numbers of tokens per decode) from `least` to `most`, at all of which a token gets the
// same bits. {1, 1}: not known for any two widths.
//
// Measured bit by bit with this version of llama.cpp, on x86-64 processors
// (docs/internals/exactness.md).
struct Widths {
    int least = 1;
    int most = 1;
};
inline constexpr int kAnyWidth = 1 << 30;
Widths batch_invariant_widths(Kernel kernel, ggml_type type);

// The same for all matrices of a model.
Widths batch_invariant_widths(const Header& header, Kernels wanted);

// The special buffer type of a kernel's weights; null: plain, or no such kernel for the matrix.
ggml_backend_buffer_type_t buffer_type(Kernel kernel, const Matrix& matrix);

// The fraction of a model's weights (by bytes) for each kernel, e.g. "AMX 76 %, plain 24 %".
std::string describe_kernels(const Header& header, Kernels wanted);

}  // namespace specllama
