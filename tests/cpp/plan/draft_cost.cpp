#include "plan/draft_cost.h"

#include <cmath>

#include "check.h"
#include "plan/constants.h"

using namespace specllama;

namespace {

bool near(double a, double b) { return std::abs(a - b) < 0.01 * b; }

// The costs of a model whose steps take a tenth of a second.
DraftCost of_steps() {
    DraftCost cost;
    for (int i = 0; i < 20; ++i) cost.observe(1, 1, 0, 0, 0.1);
    return cost;
}

}  // namespace

TEST(a_step_costs_nothing_until_it_is_measured) {
    DraftCost cost;
    CHECK(cost.step(1, 0) == 0);
    CHECK(cost.prefill_cost(500, 0) == 0);
    for (int i = 0; i < 20; ++i) cost.observe(2, 2, 0, 0, 0.6);
    CHECK(near(cost.step(1, 0), 0.3));
}

TEST(the_prefill_is_measured_apart_from_the_steps) {
    DraftCost cost = of_steps();
    const double guess = cost.prefill_cost(1000, 0);
    cost.observe(4, 4, 500, 0, 4 * 0.1 + 5);
    CHECK(near(cost.prefill_cost(1000, 0), 10));
    CHECK(!near(guess, 10));
    CHECK(near(cost.curve().seconds(1, 0), 0.1));
}

TEST(the_time_of_several_steps_is_divided_by_their_expected_costs) {
    DraftCost cost = of_steps();
    const auto all = [&] { return cost.curve().seconds(5, 0) + 2 * cost.curve().seconds(1, 0); };
    const double before = all();
    const double one = cost.curve().seconds(1, 0);
    for (int i = 0; i < 20; ++i) cost.observe(3, 3, 4, 0, 2 * before);
    CHECK(near(all(), 2 * before));
    CHECK(cost.curve().seconds(1, 0) > one);
}

TEST(steps_that_always_process_tokens_are_measured) {
    DraftCost cost;
    for (int i = 0; i < 20; ++i) cost.observe(1, 1, 1, 0, 0.1);
    CHECK(cost.curve().measured());
    CHECK(near(cost.curve().seconds(2, 0), 0.1));
}

TEST(a_time_shorter_than_the_steps_changes_no_prefill_cost) {
    DraftCost cost = of_steps();
    const double guess = cost.prefill_cost(1000, 0);
    cost.observe(4, 4, 500, 0, 0.2);
    CHECK(cost.prefill_cost(1000, 0) == guess);
}

TEST(a_net_loss_is_forgiven_slowly) {
    DraftCost cost;
    cost.account(-10, 1, 1);
    CHECK(cost.net_gain() == -10 + tuning::kNegligible);
    for (int i = 0; i < 10'000; ++i) cost.account(0, 1, 1);
    CHECK(cost.net_gain() == 0);
}

TEST(a_net_gain_is_forgotten) {
    DraftCost cost;
    cost.account(10, 1, 1);
    CHECK(cost.net_gain() < 10);
    CHECK(cost.net_gain() > 9);
    for (int i = 0; i < 10'000; ++i) cost.account(0, 1, 1);
    CHECK(cost.net_gain() < 1);
    CHECK(cost.net_gain() >= 0);
}

TEST(forgetting_many_tokens_at_once_leaves_no_loss) {
    DraftCost cost;
    cost.account(10, 1, 10'000);
    CHECK(cost.net_gain() == 0);
}
