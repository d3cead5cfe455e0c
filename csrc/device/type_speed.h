#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ggml.h"
#include "gguf/gguf_file.h"

namespace specllama {

// Speed of this machine's CPU with weights of each type. Fast kernels for a type depend on the
// processor, so the speed is measured once: on one thread, as processor time, in about 0.2 s for
// each type. The cache folder keeps the times.

// With fewer bytes of weights, a model decodes equally fast in any type, since other work takes
// most of the time.
inline constexpr std::uint64_t kLeastTypedBytes = std::uint64_t{16} << 20;

// A type, and the estimated speedup of a decode of one token with all matrices in it.
struct TypeGain {
    ggml_type type = GGML_TYPE_COUNT;
    double factor = 0;
};

// The type with the highest gain; none: llama.cpp cannot multiply such weights on a CPU.
std::optional<TypeGain> fastest_type(const Header& header, std::span<const ggml_type> types);

// A sentence about matrices of types that are slower here than their size explains, and the speedup
// with faster types. "": no relevant ones.
std::string slow_types(const Header& header);

}  // namespace specllama
