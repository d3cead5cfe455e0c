// Each number of threads has its own decode costs.

#include "plan/thread_curves.h"

#include <cmath>

#include "check.h"

using namespace specllama;

namespace {

void decode(ThreadCurves& curves, double seconds) {
    for (int i = 0; i < 20; ++i) curves.now().observe(1, 0, seconds);
}

bool costs(const CostCurve& curve, double seconds) {
    return std::abs(curve.seconds(1, 0) - seconds) < 0.02 * seconds;
}

}  // namespace

TEST(costs_learned_before_the_number_of_threads_is_known_belong_to_the_first) {
    ThreadCurves curves;
    decode(curves, 0.1);
    curves.set_threads(4);
    CHECK(costs(curves.now(), 0.1));
    CHECK(&curves.now() == &curves.first());
}

TEST(a_new_number_of_threads_begins_with_the_last_costs) {
    ThreadCurves curves;
    curves.set_threads(4);
    decode(curves, 0.1);
    curves.set_threads(2);
    CHECK(costs(curves.now(), 0.1));
}

TEST(slow_decodes_with_few_threads_change_no_cost_of_many) {
    ThreadCurves curves;
    curves.set_threads(4);
    decode(curves, 0.1);
    curves.set_threads(2);
    decode(curves, 0.3);
    CHECK(costs(curves.now(), 0.3));
    CHECK(costs(curves.first(), 0.1));
    curves.set_threads(4);
    CHECK(costs(curves.now(), 0.1));
    curves.set_threads(2);
    CHECK(costs(curves.now(), 0.3));
}
