#include "plan/caution.h"

#include <cmath>

#include "check.h"

using namespace specllama;

namespace {

double weakened(double chance, double exponent) {
    Caution{exponent}.weaken(chance);
    return chance;
}

}  // namespace

TEST(caution_raises_chances_to_a_power) {
    for (const double chance : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
        CHECK(weakened(chance, 1) == chance);
        for (const int whole : {2, 3, 7, 20})
            CHECK(std::abs(weakened(chance, whole) - std::pow(chance, whole)) < 1e-6);
    }
}

TEST(between_whole_exponents_it_goes_in_a_straight_line) {
    const double two = weakened(0.7, 2);
    const double three = weakened(0.7, 3);
    CHECK(std::abs(weakened(0.7, 2.25) - (0.75 * two + 0.25 * three)) < 1e-6);
}

TEST(however_great_the_debt_what_is_sure_stays_sure) {
    for (const double exponent : {1e3, 1e6, 1e300}) {
        CHECK(weakened(1, exponent) == 1);
        CHECK(weakened(0.9, exponent) == 0);
    }
}
