#include "beam/successors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sample/argmax.h"
#include "sample/probability.h"

namespace specllama {

bool best_successors(std::span<const float> logits, std::span<Successor> out) {
    const Token likeliest = argmax(logits);
    if (likeliest == kNoToken || !std::isfinite(logits[likeliest])) return false;
    const auto better = [](const Successor& a, const Successor& b) {
        return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
    };
    // A heap of the best so far, with the worst of them in front. Ids ascend, so a later equal is
    // no better.
    std::size_t n = 0;
    for (; n < out.size(); ++n) out[n] = {static_cast<Token>(n), logits[n]};
    std::ranges::make_heap(out, better);
    for (; n < logits.size(); ++n) {
        if (logits[n] <= out.front().logprob) continue;
        std::ranges::pop_heap(out, better);
        out.back() = {static_cast<Token>(n), logits[n]};
        std::ranges::push_heap(out, better);
    }
    std::ranges::sort_heap(out, better);
    const float highest = logits[likeliest];
    const double log_sum = std::log(exp_sum(logits, highest));
    for (Successor& one : out) one.logprob = one.logprob - highest - log_sum;
    return true;
}

}  // namespace specllama
