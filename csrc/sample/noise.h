#pragma once

#include <cmath>
#include <cstdint>

#include "specllama/types.h"

namespace specllama {

// The finalizer of SplitMix64: every bit of x changes every bit of the result with probability 1/2.
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014; constants of
// Stafford's variant 13.)
inline std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// The step of a counter: 2^64 / golden ratio, odd.
inline constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15ULL;

// The seed of choice i of a request with several; choice 0 has the request's own seed.
inline std::uint64_t choice_seed(std::uint64_t seed, std::uint64_t choice) {
    return choice == 0 ? seed : mix(mix(seed + kGamma) + choice);
}

// Uses of noise. The streams are independent of each other.
enum class NoiseStream : std::uint64_t {
    choose = 0,    // a token from the target's logits, or, coupled, from a drafter's
    draft = 1,     // in rejection sampling: the token that the drafter draws
    accept = 2,    // whether the target accepts it
    residual = 3,  // the token that replaces a rejected one
    exclude = 4,   // whether XTC excludes the top choices
};

// The noise at one position of a sequence: a pure function of (stream, seed, position, token). So
// it does not depend on the caller or on the number and order of calls. A SplitMix64 generator:
// stream, seed and position give its start, and it is read at the token's index.
class Noise {
 public:
    Noise(NoiseStream stream, std::uint64_t seed, Position position)
        : state_(mix(mix(mix(seed + kGamma) + static_cast<std::uint64_t>(stream) + kGamma) +
                     static_cast<std::uint64_t>(position) + kGamma)) {}

    // 64 random bits.
    std::uint64_t bits(Token token) const {
        return mix(state_ + (static_cast<std::uint64_t>(token) + 1) * kGamma);
    }

 private:
    std::uint64_t state_;
};

// A number strictly between 0 and 1, from the upper 52 bits: with 53, the largest plus a half would
// round to 1 and give infinite noise. (A float32 would do so far more often.)
inline double uniform(std::uint64_t bits) {
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// A standard Gumbel number; finite for all bits. The argmax of logits plus such noise is a draw
// from their softmax (Gumbel 1954; Maddison et al., "A* sampling", 2014).
inline double gumbel(std::uint64_t bits) { return -std::log(-std::log(uniform(bits))); }

}  // namespace specllama
