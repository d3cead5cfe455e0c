#include "plan/acceptance.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// Expected tokens of a round with this draft, over all regimes.
double expected(const Acceptance& acceptance, const TextRegime& regime, int position,
                const std::vector<Evidence>& draft) {
    std::vector<RegimeLanes> in_regime(draft.size() + 1);
    TextRegime::Weights regimes{};
    const int length = acceptance.predict(regime, position, draft, 1, regimes, in_regime);
    double tokens = 0;
    for (int i = 0; i < kRegimes; ++i) tokens += regimes[i] * in_regime[length][i];
    return tokens;
}

std::vector<Evidence> copy(int length, int n) {
    std::vector<Evidence> draft;
    for (int i = 0; i < n; ++i) draft.push_back({Source::match, length + i, 1});
    return draft;
}

double weakened(double chance, double exponent) {
    weaken(chance, exponent);
    return chance;
}

}  // namespace

TEST(a_round_gives_one_token_and_the_right_ones_of_its_draft) {
    const Acceptance acceptance;
    const TextRegime regime = acceptance.begin(0, 10);
    double before = 1;
    for (int n = 1; n <= 16; ++n) {
        const double now = expected(acceptance, regime, 10, copy(8, n));
        CHECK(now > before && now < before + 1);
        before = now;
    }
}

TEST(longer_matches_have_higher_acceptance) {
    const Acceptance acceptance;
    const TextRegime regime = acceptance.begin(0, 10);
    const double four = expected(acceptance, regime, 10, copy(4, 4));
    const double eight = expected(acceptance, regime, 10, copy(8, 4));
    const double sixty = expected(acceptance, regime, 10, copy(60, 4));
    CHECK(four < eight);
    CHECK(eight < sixty);
}

TEST(rates_follow_the_tokens_of_the_target) {
    for (const bool right : {true, false}) {
        Acceptance acceptance;
        TextRegime regime = acceptance.begin(0, 10);
        const double before = expected(acceptance, regime, 10, copy(8, 4));
        int position = 10;
        for (int i = 0; i < 50; ++i) {
            acceptance.observe(regime, position, copy(8, 4), right ? 4 : 0, right ? 5 : 1);
            position += right ? 5 : 1;
        }
        const double after = expected(acceptance, regime, position, copy(8, 4));
        CHECK(right ? after > before : after < before);
        CHECK(right ? after > 4.5 : after < 1.5);
    }
}

TEST(forced_tokens_are_nearly_certain_except_the_last) {
    const Acceptance acceptance;
    const TextRegime regime = acceptance.begin(0, 10);
    const double last = expected(acceptance, regime, 10, {{Source::grammar, 0, 1}});
    const double other = expected(acceptance, regime, 10, {{Source::grammar, 12, 1}});
    const double habit = expected(acceptance, regime, 10, {{Source::grammar, 12, 0.5F}});
    CHECK(other > 1.9);
    CHECK(last < other);
    CHECK(habit < other);
}

TEST(outcomes_of_grammar_drafts_change_no_rate_of_copies) {
    Acceptance acceptance;
    TextRegime regime = acceptance.begin(0, 10);
    const double before = expected(acceptance, regime, 11, copy(4, 4));
    for (int i = 0; i < 30; ++i)
        acceptance.observe(regime, 10, std::vector<Evidence>{{Source::grammar, 12, 1}}, 1, 2);
    CHECK(std::abs(expected(acceptance, regime, 11, copy(4, 4)) - before) < 1e-6);
}

TEST(regimes_have_probabilities_after_any_observations) {
    Acceptance acceptance;
    TextRegime regime = acceptance.begin(1, 0);
    const std::vector<Evidence> odd = {{Source::match, 0, 0},    {Source::ngram, 99, 2},
                                       {Source::grammar, -1, 2}, {Source::grammar, 9999, -1},
                                       {Source::model, -3, -1},  {Source::other}};
    for (int i = 0; i < 20; ++i) {
        acceptance.observe(regime, i, odd, i % 7, 1 + i % 7);
        for (const TextRegime::Weights& weights : regime.weights) {
            const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
            CHECK(std::abs(sum - 1) < 1e-9);
        }
    }
}

TEST(the_risk_exponent_raises_chances_to_a_power) {
    for (const double chance : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
        CHECK(weakened(chance, 1) == chance);
        for (const int whole : {2, 3, 7, 20})
            CHECK(std::abs(weakened(chance, whole) - std::pow(chance, whole)) < 1e-6);
    }
}

TEST(the_power_is_linear_between_whole_exponents) {
    const double two = weakened(0.7, 2);
    const double three = weakened(0.7, 3);
    CHECK(std::abs(weakened(0.7, 2.25) - (0.75 * two + 0.25 * three)) < 1e-6);
}

TEST(certain_tokens_stay_certain_at_any_regret) {
    for (const double exponent : {1e3, 1e6, 1e300}) {
        CHECK(weakened(1, exponent) == 1);
        CHECK(weakened(0.9, exponent) == 0);
    }
}
