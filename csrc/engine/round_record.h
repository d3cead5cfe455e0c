#pragma once

#include "engine/target/target.h"
#include "plan/round_plan.h"

namespace specllama {

// Counts a round in the statistics of its sequence and adds it to the trace, if there is one.
// expected: the planner's expectation; null: none.
void record_round(const RoundRequest& request, const Choice* expected, const Verification& result);

}  // namespace specllama
