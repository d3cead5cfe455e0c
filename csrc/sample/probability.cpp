#include "sample/probability.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numbers>

#include "clones.h"

namespace specllama {

namespace {

using Lanes __attribute__((vector_size(32))) = float;
using Ints __attribute__((vector_size(32))) = int;
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);

constexpr float kMost = 88;  // largest integer x for which a float can hold e^x
constexpr auto kLog2E = std::numbers::log2e_v<float>;
// ln 2 in two parts. The first has so few digits that integer multiples of it are exact.
constexpr float kLn2 = 0.693359375F;  // NOLINT(modernize-use-std-numbers)
constexpr float kLn2Rest = -2.12194440e-4F;
// Adding a number to this rounds it to an integer, which is then in the lowest bits.
constexpr float kRounding = 0x1.8p23F;

// Replaces x by e^x, with a relative error of at most 3e-7, in all lanes at once: 2^n e^r, with
// Taylor's polynomial for |r| up to ln(2) / 2. (Not every C library has vector functions.)
inline __attribute__((always_inline)) void exponentiate(Lanes& x) {
    x = x < -kMost ? Lanes{} - kMost : x;
    x = x > kMost ? Lanes{} + kMost : x;
    const Lanes shifted = x * kLog2E + kRounding;
    const Lanes n = shifted - kRounding;
    const Lanes r = x - n * kLn2 - n * kLn2Rest;
    Lanes power = r * (1.0F / 720) + 1.0F / 120;
    for (const float factor : {1.0F / 24, 1.0F / 6, 1.0F / 2, 1.0F, 1.0F})
        power = power * r + factor;
    Ints bits;
    Ints exponent;
    std::memcpy(&bits, &power, sizeof(bits));
    std::memcpy(&exponent, &shifted, sizeof(exponent));
    bits += exponent << 23;
    std::memcpy(&x, &bits, sizeof(x));
}

}  // namespace

SPECLLAMA_CLONES("avx2")
double exp_sum(std::span<const float> logits, float origin) {
    // So few terms per lane (128) that a float sum is precise enough.
    constexpr std::size_t kPart = 128 * kLanes;
    double total = 0;
    for (std::size_t from = 0; from < logits.size(); from += kPart) {
        const std::size_t to = std::min(from + kPart, logits.size());
        Lanes sum{};
        for (std::size_t i = from; i < to; i += kLanes) {
            Lanes x;
            if (i + kLanes <= to) {
                std::memcpy(&x, &logits[i], sizeof(x));
            } else {
                for (std::size_t lane = 0; lane < kLanes; ++lane)
                    x[lane] = i + lane < to ? logits[i + lane] : origin - 2 * kMost;
            }
            x -= origin;
            exponentiate(x);
            sum += x;
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) total += sum[lane];
    }
    return total;
}

float probability(std::span<const float> logits, Token token) {
    return static_cast<float>(1 / exp_sum(logits, logits[token]));
}

}  // namespace specllama
