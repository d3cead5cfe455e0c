#include "plan/budget.h"

#include <algorithm>

namespace specllama {

int draft_budget(const BudgetLimits& limits) {
    const int most =
        std::min({limits.spec_length, limits.n_batch - limits.n_pending, limits.n_tokens_left - 1});
    return std::max(most, 0);
}

}  // namespace specllama
