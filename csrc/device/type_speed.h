#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ggml.h"
#include "gguf/gguf_file.h"

namespace specllama {

// How fast this machine's CPU multiplies weights of which type. Whether there are fast kernels for
// a type depends on the processor, and so it is measured: on one thread, by the time that the
// processor spends on it, some 0.2 s for each type; once, as the cache folder remembers the times.

// Bytes of weights below which a model decodes as fast in any type: other work takes most of the
// time.
inline constexpr std::uint64_t kLeastTypedBytes = std::uint64_t{16} << 20;

// A type, and how many times as fast a token's decode would be with all matrices in it, by the
// times of the matrices.
struct TypeGain {
    ggml_type type = GGML_TYPE_COUNT;
    double factor = 0;
};

// Of the `types`, the one with the highest gain; none: llama.cpp cannot multiply such weights on a
// CPU.
std::optional<TypeGain> fastest_type(const Header& header, std::span<const ggml_type> types);

// One sentence if some of a model's matrices are of a type that takes longer here than its size
// explains: which they are, and how fast the model would decode in faster types. "": there are none
// that matter.
std::string slow_types(const Header& header);

}  // namespace specllama
