#include "plan/width_switch.h"

#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// [n]: one second plus a tenth for each further row.
std::vector<double> steady(int n_most) {
    std::vector<double> all = {0};
    for (int n = 1; n <= n_most; ++n) all.push_back(1 + 0.1 * (n - 1));
    return all;
}

WidthSwitch expensive_switch() {
    WidthSwitch width_switch;
    width_switch.set_seconds(2);
    width_switch.set_padding(true);
    width_switch.note(1);
    return width_switch;
}

}  // namespace

TEST(without_a_switch_cost_the_steady_costs_count) {
    WidthSwitch width_switch;
    width_switch.set_padding(true);
    width_switch.note(16);
    const std::vector<double> all = steady(20);
    CHECK(width_switch.decode_costs(all, 1).data() == all.data());
    CHECK(width_switch.width(all, 3, 1) == 3);
    CHECK(width_switch.steady());
}

TEST(a_draft_pays_for_two_switches) {
    const WidthSwitch width_switch = expensive_switch();
    const std::vector<double> all = steady(20);
    const auto decode_costs = width_switch.decode_costs(all, 1);
    CHECK(decode_costs[1] == 1);
    CHECK(decode_costs[8] == all[8] + 4);
}

TEST(a_draft_at_the_last_width_costs_no_switch) {
    WidthSwitch width_switch = expensive_switch();
    width_switch.note(16);
    const std::vector<double> all = steady(20);
    const auto decode_costs = width_switch.decode_costs(all, 1);
    CHECK(decode_costs[1] == all[1] + 2);                                          // base width
    CHECK(decode_costs[4] == all[16] + 2 && decode_costs[4] == decode_costs[16]);  // padded
    CHECK(decode_costs[17] == all[17] + 4);
    CHECK(width_switch.width(all, 1, 1) == 1 && width_switch.width(all, 4, 1) == 16);
    CHECK(width_switch.width(all, 17, 1) == 17);
    width_switch.set_padding(false);
    CHECK(width_switch.width(all, 4, 1) == 4 && width_switch.decode_costs(all, 1)[4] == all[4] + 4);
}

TEST(decodes_are_steady_from_the_third_one_of_a_width_on) {
    WidthSwitch width_switch = expensive_switch();
    for (const bool is_settled : {false, false, true, true}) {
        width_switch.note(5);
        CHECK(width_switch.steady() == is_settled);
    }
    width_switch.note(4);
    CHECK(!width_switch.steady());
}

TEST(no_decode_is_padded_to_the_width_of_a_prompt) {
    WidthSwitch width_switch = expensive_switch();
    width_switch.note(512);
    CHECK(width_switch.last() == 0);
    CHECK(width_switch.width(steady(20), 1, 1) == 1);
    width_switch.note(512);
    CHECK(!width_switch.steady());
}

TEST(one_drafted_row_is_the_base_width_if_it_pays) {
    WidthSwitch width_switch = expensive_switch();
    const std::vector<double> all = steady(20);
    const std::vector<double> promising = {0, 0.6, 0.9};
    for (int i = 0; i < 100; ++i) width_switch.learn(promising, 1, 1, all);
    const auto decode_costs = width_switch.decode_costs(all, 1);
    CHECK(decode_costs[2] == all[2] + 2);  // one switch
    CHECK(decode_costs[1] == all[1] + 2 && decode_costs[3] == all[3] + 4);
    for (int i = 0; i < 200; ++i) width_switch.learn(std::vector<double>{0}, 1, 1, all);
    CHECK(width_switch.decode_costs(all, 1)[1] == all[1]);
}

TEST(the_base_width_has_a_drafted_row_for_each_sequence) {
    WidthSwitch width_switch = expensive_switch();
    const std::vector<double> all = steady(20);
    std::vector<double> tokens = {0};
    for (int k = 1; k <= 8; ++k) tokens.push_back(0.8 * k);
    for (int i = 0; i < 100; ++i) width_switch.learn(tokens, 8, 8, all);
    width_switch.note(16);
    const auto decode_costs = width_switch.decode_costs(all, 8);
    CHECK(decode_costs[16] == all[16] && decode_costs[8] == all[16] &&
          width_switch.width(all, 8, 8) == 16);
}
