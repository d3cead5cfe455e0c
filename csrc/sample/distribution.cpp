#include "sample/distribution.h"

#include <algorithm>
#include <cmath>

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

}  // namespace specllama
