#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specllama {

TokenLogprobs log_softmax(std::span<const Candidate> candidates, double temperature, Token token,
                          int k) {
    const auto by_logit = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    std::vector<Candidate> top(std::min<std::size_t>(k, candidates.size()));
    std::ranges::partial_sort_copy(candidates, top, by_logit);

    const double highest = std::ranges::min_element(candidates, by_logit)->logit;
    double sum = 0;
    for (const Candidate& one : candidates) sum += std::exp((one.logit - highest) / temperature);
    const double log_sum = std::log(sum);
    const auto logprob = [&](float logit) {
        return static_cast<float>((logit - highest) / temperature - log_sum);
    };

    TokenLogprobs result;
    result.token = token;
    result.logprob = -std::numeric_limits<float>::infinity();
    for (const Candidate& one : candidates)
        if (one.token == token) result.logprob = logprob(one.logit);
    for (const Candidate& one : top) result.top.emplace_back(one.token, logprob(one.logit));
    return result;
}

TokenLogprobs log_softmax(std::span<const float> logits, Token token, int k) {
    std::vector<Candidate> candidates;
    candidates.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (std::isfinite(logits[i])) candidates.push_back({logits[i], static_cast<Token>(i)});
    return log_softmax(candidates, 1.0, token, k);
}

}  // namespace specllama
