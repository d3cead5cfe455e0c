#include "sample/argmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace specllama {

Token argmax(std::span<const float> logits) {
    // Lanes without a dependency between them, so that the compiler may use vector registers: the
    // row of a 128k vocabulary is read at the speed of memory.
    constexpr std::size_t kLanes = 32;
    std::array<float, kLanes> best;
    best.fill(-std::numeric_limits<float>::infinity());
    std::array<int, kLanes> nan{};

    const std::size_t n = logits.size();
    const std::size_t n_whole = n - n % kLanes;
    for (std::size_t i = 0; i < n_whole; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float x = logits[i + lane];
            best[lane] = x > best[lane] ? x : best[lane];
            nan[lane] |= x != x;
        }
    }
    for (std::size_t i = n_whole; i < n; ++i) {
        best[0] = std::max(best[0], logits[i]);
        nan[0] |= std::isnan(logits[i]);
    }
    if (n == 0 || std::ranges::any_of(nan, [](int x) { return x != 0; })) return kNoToken;

    const auto at = std::ranges::find(logits, *std::ranges::max_element(best));
    return static_cast<Token>(at - logits.begin());
}

}  // namespace specllama
