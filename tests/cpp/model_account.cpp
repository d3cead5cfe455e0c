#include "plan/model_account.h"

#include "check.h"
#include "plan/constants.h"

using namespace specllama;

TEST(what_a_model_has_lost_is_forgiven_slowly) {
    ModelAccount account;
    account.add(-10, 1, 1);
    CHECK(account.balance() == -10 + tuning::kNegligible);
    for (int i = 0; i < 10'000; ++i) account.add(0, 1, 1);
    CHECK(account.balance() == 0);
}

TEST(what_a_model_has_saved_is_forgotten) {
    ModelAccount account;
    account.add(10, 1, 1);
    CHECK(account.balance() < 10);
    CHECK(account.balance() > 9);
    for (int i = 0; i < 10'000; ++i) account.add(0, 1, 1);
    CHECK(account.balance() < 1);
    CHECK(account.balance() >= 0);
}

TEST(many_tokens_at_once_leave_no_debt_behind) {
    ModelAccount account;
    account.add(10, 1, 10'000);
    CHECK(account.balance() == 0);
}
