#include "sample/mask.h"

#include <algorithm>
#include <limits>

namespace specllama {

void Mask::apply(std::span<float> logits) {
    constexpr float kForbidden = -std::numeric_limits<float>::infinity();
    constexpr std::uint32_t kAll = ~std::uint32_t{0};
    const Bits bits = allowed();
    for (std::size_t word = 0; word < bits.size() && word * 32 < logits.size(); ++word) {
        const std::span<float> part =
            logits.subspan(word * 32, std::min<std::size_t>(32, logits.size() - word * 32));
        if (bits[word] == kAll) continue;
        for (std::size_t i = 0; i < part.size(); ++i)
            if ((bits[word] >> i & 1U) == 0) part[i] = kForbidden;
    }
}

}  // namespace specllama
