#include "plan/cost_curve.h"

#include <cmath>
#include <limits>

#include "check.h"

using namespace specllama;

namespace {

bool near(double value, double wanted, double part) {
    return std::abs(value - wanted) <= part * wanted;
}

}  // namespace

TEST(an_unmeasured_curve_rises) {
    const CostCurve curve;
    CHECK(!curve.measured());
    for (int n = 1; n < CostCurve::kMaxTokens; ++n)
        CHECK(curve.seconds(n, 0) > 0 && curve.seconds(n + 1, 0) > curve.seconds(n, 0));
}

TEST(measured_widths_have_their_measured_times) {
    CostCurve curve;
    for (int i = 0; i < 5; ++i)
        for (const int n : {1, 2, 4, 8, 16}) curve.observe(n, 0, 0.01 * (1 + 0.2 * (n - 1)));
    CHECK(curve.measured() && curve.measured(8) && !curve.measured(7));
    for (const int n : {1, 2, 4, 8, 16}) CHECK(near(curve.seconds(n, 0), 0.008 + 0.002 * n, 0.05));
    CHECK(curve.doubt(8, 1) < CostCurve().doubt(8, 1));
}

TEST(uncertain_widths_are_estimated_as_cheaper) {
    CostCurve curve;
    for (int i = 0; i < 5; ++i)
        for (const int n : {2, 4, 8, 1}) curve.observe(n, 0, 0.01 * (1 + 0.2 * (n - 1)));
    const auto part = [&](int n) { return curve.decode_costs(n, 0)[n] / curve.seconds(n, 0); };
    CHECK(part(1) == 1);  // the last measured width
    CHECK(part(8) < 1 && part(8) > 0.97);
    CHECK(part(32) < part(16) && part(16) < part(8));
    CHECK(near(part(200), part(CostCurve::kMaxTokens), 1e-6));
    const double before = part(32);
    for (int i = 0; i < 5; ++i) curve.observe(32, 0, 0.08);
    CHECK(part(32) == 1);
    curve.observe(1, 0, 0.01);
    CHECK(part(32) > before && part(32) < 1);
}

TEST(impossible_times_are_ignored) {
    CostCurve curve;
    curve.observe(1, 0, 0.01);
    const double before = curve.seconds(4, 100);
    for (const double seconds : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()})
        curve.observe(4, 0, seconds);
    curve.observe(0, 0, 0.01);
    curve.observe(-1, 0, 0.01);
    curve.observe(4, -1, 0.01);
    CHECK(curve.seconds(4, 100) == before);
    CHECK(!curve.measured(4));
}

TEST(saved_points_of_a_curve_are_restored) {
    CostCurve curve;
    for (const int n : {1, 4, 16}) curve.observe(n, 0, 0.02 + 0.001 * n);
    CostCurve restored;
    restored.restore(curve.points());
    CHECK(restored.measured());
    for (const int n : {1, 4, 16}) CHECK(near(restored.seconds(n, 0), curve.seconds(n, 0), 0.03));
}
