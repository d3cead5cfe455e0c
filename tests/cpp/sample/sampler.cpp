#include "sample/sampler.h"

#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "specllama/error.h"

using namespace specllama;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::vector<Token> kContext = {1, 2, 3};

SamplingOptions at(double temperature, std::uint64_t seed = 1) {
    SamplingOptions options;
    options.temperature = temperature;
    options.seed = seed;
    return options;
}

Token choose(const SamplingOptions& options, std::vector<float> logits) {
    return Sampler(options, logits.size()).choose(logits, kContext);
}

Token choose(Sampler& sampler, std::vector<float>& row, const Guess& guess) {
    return sampler.choose(row, kContext, {&guess, 1});
}

}  // namespace

TEST(temperature_0_chooses_the_first_of_the_most_likely_tokens) {
    CHECK(choose(at(0), {1, 3, 2, 3}) == 1);
    CHECK(choose(at(0), {-kInfinity, -kInfinity, -5}) == 2);
}

TEST(a_tiny_temperature_chooses_the_most_likely_token) {
    CHECK(choose(at(1e-310), {2, 3, 1}) == 1);
    CHECK(choose(at(1e-45), {2, 3, 1}) == 1);
}

TEST(rows_without_a_choice_are_reported) {
    CHECK(choose(at(0), {1, std::nanf(""), 2}) == kNoToken);
    CHECK(choose(at(1), {1, std::nanf(""), 2}) == kNoToken);
    CHECK(choose(at(0), {-kInfinity, -kInfinity}) == kNothingLeft);
    CHECK(choose(at(1), {-kInfinity, -kInfinity}) == kNothingLeft);
}

TEST(drafters_change_no_choice) {
    const std::vector<float> logits = {0.1f, 0.5f, 0.2f, 0.9f, 0.3f};
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Sampler sampler(at(0.8, seed), logits.size());
        std::vector<float> row = logits;
        const Token alone = sampler.choose(row, kContext);
        for (const Token drafted : {0, 3}) {
            row = logits;
            CHECK(choose(sampler, row, {drafted}) == alone);
        }
        // A drafter with the same logits and noise draws the same.
        row = logits;
        Distribution drawn_from;
        CHECK(sampler.draft(row, kContext, drawn_from) == alone);
    }
}

TEST(draws_follow_softmax) {
    const std::vector<float> logits = {0, 1, 2};
    constexpr int kDraws = 20'000;
    std::vector<int> counts(3);
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) ++counts[choose(at(1, seed), logits)];
    const double sum = 1 + std::exp(1) + std::exp(2);
    for (int token = 0; token < 3; ++token) {
        const double p = std::exp(token) / sum;
        const double sd = std::sqrt(p * (1 - p) / kDraws);
        CHECK(std::abs(static_cast<double>(counts[token]) / kDraws - p) < 5 * sd);
    }
}

TEST(choices_follow_truncation_and_biases) {
    SamplingOptions options = at(5);
    options.top_k = 2;
    options.logit_bias = {{0, -kInfinity}};
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        options.seed = seed;
        const Token token = choose(options, {9, 3, 2, 1});
        CHECK(token == 1 || token == 2);
    }
}

TEST(rejection_keeps_tokens_with_p_of_at_least_q) {
    SamplingOptions options = at(1);
    options.acceptance = AcceptanceRule::rejection;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        options.seed = seed;
        Sampler sampler(options, 2);
        CHECK(sampler.rejects());
        const Distribution drawn_from = {{0, 0.25}, {1, 0.75}};
        std::vector<float> row = {0, 0};
        CHECK(choose(sampler, row, {0, &drawn_from}) == 0);
    }
}

TEST(options_out_of_range_are_refused) {
    CHECK_THROWS(InvalidArgument, Sampler(at(-1), 3));
    CHECK_THROWS(InvalidArgument, Sampler(at(std::nan("")), 3));
    SamplingOptions options = at(1);
    options.top_p = 1.5;
    CHECK_THROWS(InvalidArgument, Sampler(options, 3));
    options = at(1);
    options.logit_bias = {{3, 1}};
    CHECK_THROWS(InvalidArgument, Sampler(options, 3));
}

TEST(skipped_tokens_could_not_have_been_chosen) {
    // The parts of the row differ much, and one is forbidden.
    std::vector<float> logits(1000);
    for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>(i % 17) - 3.0f * static_cast<float>(i / 128);
    for (std::size_t i = 256; i < 384; ++i) logits[i] = -kInfinity;
    for (const double temperature : {0.2, 1.0, 5.0}) {
        for (std::uint64_t seed = 0; seed < 300; ++seed) {
            const Noise noise(NoiseStream::choose, seed, static_cast<Position>(kContext.size()));
            double best = -kInfinity;
            Token wanted = kNoToken;
            for (std::size_t i = 0; i < logits.size(); ++i) {
                const auto token = static_cast<Token>(i);
                const double score = logits[i] / temperature + gumbel(noise.bits(token));
                if (score <= best) continue;
                best = score;
                wanted = token;
            }
            CHECK(choose(at(temperature, seed), logits) == wanted);
        }
    }
}
