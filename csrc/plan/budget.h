#pragma once

namespace specllama {

// What bounds the draft of one sequence in one round.
struct BudgetLimits {
    int spec_length = 0;    // as configured
    int n_batch = 0;        // tokens in one decode
    int n_pending = 1;      // committed tokens that this decode takes in before the draft
    int n_tokens_left = 0;  // tokens that the request may generate and the context still hold
};

// How many tokens may be drafted, 0 or more. A round of g drafted tokens generates up to g + 1.
int draft_budget(const BudgetLimits& limits);

}  // namespace specllama
