#include "plan/width_change.h"

#include <vector>

#include "check.h"

using namespace specllama;

namespace {

// [n]: one second, and a tenth for each further row.
std::vector<double> settled(int n_most) {
    std::vector<double> all = {0};
    for (int n = 1; n <= n_most; ++n) all.push_back(1 + 0.1 * (n - 1));
    return all;
}

WidthChange costly() {
    WidthChange change;
    change.set_seconds(2);
    change.set_padding(true);
    change.note(1);
    return change;
}

}  // namespace

TEST(where_changes_cost_nothing_decodes_take_what_they_take) {
    WidthChange change;
    change.set_padding(true);
    change.note(16);
    const std::vector<double> all = settled(20);
    CHECK(change.prices(all, 1).data() == all.data());
    CHECK(change.width(all, 3, 1) == 3);
    CHECK(change.settled());
}

TEST(a_draft_pays_for_the_way_there_and_back) {
    const WidthChange change = costly();
    const std::vector<double> all = settled(20);
    const auto prices = change.prices(all, 1);
    CHECK(prices[1] == 1);
    CHECK(prices[8] == all[8] + 4);
}

TEST(the_way_back_has_been_paid_and_until_then_drafts_cost_nothing) {
    WidthChange change = costly();
    change.note(16);
    const std::vector<double> all = settled(20);
    const auto prices = change.prices(all, 1);
    CHECK(prices[1] == all[1] + 2);                              // home
    CHECK(prices[4] == all[16] + 2 && prices[4] == prices[16]);  // padded
    CHECK(prices[17] == all[17] + 4);
    CHECK(change.width(all, 1, 1) == 1 && change.width(all, 4, 1) == 16);
    CHECK(change.width(all, 17, 1) == 17);
    change.set_padding(false);
    CHECK(change.width(all, 4, 1) == 4 && change.prices(all, 1)[4] == all[4] + 4);
}

TEST(decodes_are_settled_from_the_third_of_a_width_on) {
    WidthChange change = costly();
    for (const bool is_settled : {false, false, true, true}) {
        change.note(5);
        CHECK(change.settled() == is_settled);
    }
    change.note(4);
    CHECK(!change.settled());
}

TEST(nobody_pads_to_the_width_of_a_prompt) {
    WidthChange change = costly();
    change.note(512);
    CHECK(change.last() == 0);
    CHECK(change.width(settled(20), 1, 1) == 1);
    change.note(512);
    CHECK(!change.settled());
}

TEST(where_one_drafted_row_pays_that_is_home) {
    WidthChange change = costly();
    const std::vector<double> all = settled(20);
    const std::vector<double> promising = {0, 0.6, 0.9};
    for (int i = 0; i < 100; ++i) change.learn(promising, 1, 1, all);
    const auto prices = change.prices(all, 1);
    CHECK(prices[2] == all[2] + 2);  // once
    CHECK(prices[1] == all[1] + 2 && prices[3] == all[3] + 4);
    for (int i = 0; i < 200; ++i) change.learn(std::vector<double>{0}, 1, 1, all);
    CHECK(change.prices(all, 1)[1] == all[1]);
}

TEST(of_many_sequences_each_has_a_drafted_row_at_home) {
    WidthChange change = costly();
    const std::vector<double> all = settled(20);
    std::vector<double> tokens = {0};
    for (int k = 1; k <= 8; ++k) tokens.push_back(0.8 * k);
    for (int i = 0; i < 100; ++i) change.learn(tokens, 8, 8, all);
    change.note(16);
    const auto prices = change.prices(all, 8);
    CHECK(prices[16] == all[16] && prices[8] == all[16] && change.width(all, 8, 8) == 16);
}
