#include "sample/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specllama {

double probability(const Distribution& distribution, Token token) {
    const auto at = std::ranges::lower_bound(distribution, token, {}, &Outcome::token);
    return at != distribution.end() && at->token == token ? at->probability : 0;
}

double highest(const Distribution& distribution) {
    return std::ranges::max_element(distribution, {}, &Outcome::probability)->probability;
}

void softmax(std::span<const Candidate> candidates, double temperature, Distribution& out) {
    const double best = std::ranges::max_element(candidates, {}, &Candidate::logit)->logit;
    double sum = 0;
    out.clear();
    for (const Candidate& candidate : candidates) {
        const double weight = std::exp((candidate.logit - best) / temperature);
        if (weight == 0) continue;
        out.push_back({candidate.token, weight});
        sum += weight;
    }
    for (Outcome& outcome : out) outcome.probability /= sum;
    if (!std::ranges::is_sorted(out, {}, &Outcome::token))
        std::ranges::sort(out, {}, &Outcome::token);
}

TokenLogprobs log_softmax(std::span<const Candidate> candidates, double temperature, Token token,
                          int k) {
    std::vector<Candidate> top(std::min<std::size_t>(k, candidates.size()));
    std::ranges::partial_sort_copy(candidates, top, likelier);

    const double highest = std::ranges::min_element(candidates, likelier)->logit;
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
