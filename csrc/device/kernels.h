#pragma once

#include <string>

#include "ggml-backend.h"
#include "gguf/gguf_file.h"

namespace specllama {

// llama.cpp's kernels that multiply with a weight matrix on the CPU. plain: for weights as they are
// in the file; repacked: for a layout that llama.cpp makes of them at loading; amx: for Intel's AMX
// tiles.
enum class Kernel { plain, repacked, amx };

// Which of them multiply a model's weights: the fastest, or the fastest of those that give a token
// the same bits however many tokens are decoded at once.
enum class Kernels { fastest, batch_invariant };

// The kernel for a matrix: the fastest on this machine, or, with Kernels::batch_invariant, the
// fastest of those that give a token the same bits at any width; plain if there is none.
//
// AMX kernels are left out where they are wrong in this version of llama.cpp. They take the
// activations for one contiguous matrix and, given several, write all products but the first to the
// wrong place: so they are not used inside recurrent layers. Of weights in slices (the heads of
// latent attention) they pack only the first slice. Nor are they used if they crash (see amx.h).
Kernel kernel_for(const Matrix& matrix, Kernels wanted);

// The kernel that llama.cpp chooses by itself.
Kernel default_kernel(const Matrix& matrix);

// Widths (numbers of tokens decoded at once), from `least` to `most`, at all of which a token gets
// the same bits. {1, 1}: not known of any two widths.
//
// Measured bit by bit with this version of llama.cpp, on x86-64 processors;
// docs/internals/exactness.md says how.
struct Widths {
    int least = 1;
    int most = 1;
};
inline constexpr int kAnyWidth = 1 << 30;
Widths batch_invariant_widths(Kernel kernel, ggml_type type);

// The widths at which that holds for all matrices of a model.
Widths batch_invariant_widths(const Header& header, Kernels wanted);

// The special buffer type in which a kernel's weights lie; null: plain, or no such kernel for the
// matrix.
ggml_backend_buffer_type_t buffer_type(Kernel kernel, const Matrix& matrix);

// The part of a model's weights, in bytes, that each kernel multiplies with, e.g. "AMX 76 %, plain
// 24 %".
std::string describe_kernels(const Header& header, Kernels wanted);

}  // namespace specllama
