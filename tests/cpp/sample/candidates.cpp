#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "sample/argmax.h"

using namespace specllama;

namespace {

// Lengths of rows around multiples of kPartLogits.
const std::vector<std::size_t> kSizes = {1, 7, 127, 128, 129, 256, 300, 1000};

// Only a few values, so that many logits are equal.
std::vector<float> row(std::size_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> value(-20, 20);
    std::vector<float> logits(n);
    for (float& logit : logits) logit = static_cast<float>(value(random)) / 2;
    return logits;
}

// By the definition: all tokens, the most likely first, of equal ones the lower id.
std::vector<Candidate> sorted(const std::vector<float>& logits) {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < logits.size(); ++i)
        all.push_back({logits[i], static_cast<Token>(i)});
    std::ranges::stable_sort(all, std::greater{}, &Candidate::logit);
    return all;
}

std::vector<Token> tokens(std::span<const Candidate> candidates) {
    std::vector<Token> tokens;
    for (const Candidate& one : candidates) tokens.push_back(one.token);
    std::ranges::sort(tokens);
    return tokens;
}

std::vector<Token> left(const SamplingOptions& options, const std::vector<float>& logits,
                        bool exclude = false) {
    Candidates candidates(options, logits.size());
    const auto cut = [&](const std::vector<float>& one) {
        std::vector<float> peaks(n_parts(one.size()));
        argmax(one, peaks);
        return tokens(candidates.cut(one, peaks, exclude));
    };
    cut(row(logits.size(), 99));  // nothing of this row affects the next
    return cut(logits);
}

}  // namespace

TEST(argmax_is_the_first_of_the_largest_values) {
    for (const std::size_t n : kSizes) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const std::vector<float> logits = row(n, seed);
            std::vector<float> peaks(n_parts(n));
            const auto largest = std::ranges::max_element(logits) - logits.begin();
            CHECK(argmax(logits, peaks) == largest);
            CHECK(argmax(logits) == largest);
            for (std::size_t i = 0; i < peaks.size(); ++i)
                CHECK(peaks[i] == std::ranges::max(part(logits, i)));
        }
    }
}

TEST(argmax_of_a_row_with_a_nan_anywhere_is_none) {
    for (const std::size_t n : kSizes) {
        for (std::size_t at = 0; at < n; ++at) {
            std::vector<float> logits = row(n, 1);
            logits[at] = std::nanf("");
            CHECK(argmax(logits) == kNoToken);
        }
    }
    CHECK(argmax({}) == kNoToken);
}

TEST(argmax_of_a_row_with_plus_infinity_is_none) {
    for (const std::size_t n : kSizes) {
        std::vector<float> logits = row(n, 1);
        logits[n / 2] = std::numeric_limits<float>::infinity();
        CHECK(argmax(logits) == kNoToken);
    }
}

TEST(argmax_of_a_row_of_minus_infinity_is_the_first) {
    for (const std::size_t n : kSizes)
        CHECK(argmax(std::vector<float>(n, -std::numeric_limits<float>::infinity())) == 0);
}

TEST(forbidden_tokens_are_not_candidates) {
    for (const std::size_t n : kSizes) {
        std::vector<float> logits = row(n, 1);
        for (std::size_t at = 0; at < n; ++at)
            if (at != n / 2) logits[at] = -std::numeric_limits<float>::infinity();
        const std::vector<Token> only{static_cast<Token>(n / 2)};
        SamplingOptions top_k;
        top_k.top_k = 3;
        SamplingOptions top_p;
        top_p.top_p = 0.9;
        SamplingOptions min_p;
        min_p.min_p = 0.1;
        for (const SamplingOptions& options : {SamplingOptions(), top_k, top_p, min_p})
            CHECK(left(options, logits) == only);
    }
}

TEST(truncation_follows_the_definitions) {
    for (const std::size_t n : kSizes) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            const std::vector<float> logits = row(n, seed);
            const std::vector<Candidate> all = sorted(logits);

            for (const int k : {1, 5, 40, 400}) {
                SamplingOptions options;
                options.top_k = k;
                const auto best = std::span(all).first(std::min<std::size_t>(k, n));
                CHECK(left(options, logits) == tokens(best));
            }

            SamplingOptions min_p;
            min_p.min_p = 0.1;
            const auto likely = std::ranges::count_if(all, [&](const Candidate& one) {
                return one.logit >= all[0].logit + std::log(min_p.min_p);
            });
            CHECK(left(min_p, logits) == tokens(std::span(all).first(likely)));

            SamplingOptions top_p;
            top_p.top_p = 0.9;
            double total = 0;
            for (const Candidate& one : all) total += std::exp(one.logit);
            double sum = 0;
            std::size_t kept = 0;
            while (sum < top_p.top_p * total) sum += std::exp(all[kept++].logit);
            CHECK(left(top_p, logits) == tokens(std::span(all).first(kept)));
        }
    }
}

TEST(typical_tokens_are_near_the_average_information) {
    // Probabilities 0.4, 0.3, 0.2, 0.1: -log p is 0.92, 1.20, 1.61, 2.30, with a mean of 1.28.
    std::vector<float> logits;
    for (const double p : {0.1, 0.4, 0.2, 0.3}) logits.push_back(static_cast<float>(std::log(p)));
    SamplingOptions options;
    for (const auto& [typical, kept] : std::vector<std::pair<double, std::vector<Token>>>{
             {0.0, {3}}, {0.29, {3}}, {0.45, {2, 3}}, {0.85, {1, 2, 3}}, {0.95, {0, 1, 2, 3}}}) {
        options.typical_p = typical;
        CHECK(left(options, logits) == kept);
    }
    options.typical_p = 0.2;
    options.min_p = 0.9;  // of the most likely kept token
    CHECK(left(options, logits) == std::vector<Token>{3});
}

TEST(xtc_excludes_top_choices_except_the_least_likely) {
    std::vector<float> logits;
    for (const double p : {0.1, 0.4, 0.2, 0.3}) logits.push_back(static_cast<float>(std::log(p)));
    SamplingOptions options;
    for (const auto& [threshold, kept] :
         std::vector<std::pair<double, std::vector<Token>>>{{0.5, {0, 1, 2, 3}},
                                                            {0.35, {0, 1, 2, 3}},
                                                            {0.25, {0, 2, 3}},
                                                            {0.15, {0, 2}},
                                                            {0.0, {0}}}) {
        options.xtc_threshold = threshold;
        CHECK(left(options, logits, true) == kept);
    }
    // After the earlier steps, the most likely token has 0.44 and the next one 0.33.
    options.top_k = 3;
    options.xtc_threshold = 0.32;
    CHECK(left(options, logits, true) == (std::vector<Token>{2, 3}));
}
