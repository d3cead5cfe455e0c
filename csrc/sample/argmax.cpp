#include "sample/argmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "clones.h"

namespace specllama {

namespace {

using Lanes __attribute__((vector_size(32))) = float;
using Flags __attribute__((vector_size(32))) = int;

constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);
// Independent vectors per step.
constexpr std::size_t kAtOnce = 4;
static_assert(kPartLogits % (kAtOnce * kLanes) == 0);

constexpr float kLeast = -std::numeric_limits<float>::infinity();

}  // namespace

// Fast enough to read a row of a 128k vocabulary at memory speed.
SPECLLAMA_CLONES("avx2")
Token argmax(std::span<const float> logits, std::span<float> peaks) {
    const std::size_t n = logits.size();
    if (n == 0) return kNoToken;
    std::array<Flags, kAtOnce> nans{};
    bool nan = false;
    float most = kLeast;
    std::size_t at = 0;  // start of the part with `most`
    for (std::size_t first = 0; first < n; first += kPartLogits) {
        float peak = kLeast;
        if (first + kPartLogits <= n) {
            std::array<Lanes, kAtOnce> best;
            best.fill(Lanes{} + kLeast);
            for (std::size_t i = first; i < first + kPartLogits; i += kAtOnce * kLanes) {
                for (std::size_t a = 0; a < kAtOnce; ++a) {
                    Lanes x;
                    std::memcpy(&x, &logits[i + a * kLanes], sizeof(x));
                    best[a] = x > best[a] ? x : best[a];
                    nans[a] |= x != x;  // NOLINT(misc-redundant-expression): lanes have no isnan
                }
            }
            best[0] = best[0] > best[1] ? best[0] : best[1];
            best[2] = best[2] > best[3] ? best[2] : best[3];
            best[0] = best[0] > best[2] ? best[0] : best[2];
            for (std::size_t lane = 0; lane < kLanes; ++lane) peak = std::max(peak, best[0][lane]);
        } else {
            for (const float x : logits.subspan(first)) {
                peak = std::max(peak, x);
                nan |= std::isnan(x);
            }
        }
        if (!peaks.empty()) peaks[first / kPartLogits] = peak;
        if (peak <= most) continue;
        most = peak;
        at = first;
    }
    nans[0] |= nans[1] | nans[2] | nans[3];
    for (std::size_t lane = 0; lane < kLanes; ++lane) nan |= nans[0][lane] != 0;
    if (nan || most == -kLeast) return kNoToken;
    while (logits[at] != most) ++at;
    return static_cast<Token>(at);
}

}  // namespace specllama
