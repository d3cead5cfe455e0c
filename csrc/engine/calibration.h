#pragma once

#include "llama/context.h"
#include "plan/cost_curve.h"

namespace specllama {

// Whether what an earlier session has learned of decodes of up to n_max tokens still holds, by a
// few decodes; where they fail, it does. The memory is left empty.
bool still_holds(Context& context, int n_max, const CostCurve& curve);

// Measures what decodes of up to n_max tokens cost, before the first request: widths in the order
// of CostCurve::next_probe, random tokens, an empty context. Takes a fraction of a second, beside
// a first decode that only warms up, on a GPU one of each width. The memory is empty before and
// after. A decode that fails is no error here: what is not measured is learned from the rounds.
void calibrate(Context& context, int n_max, CostCurve& curve);

}  // namespace specllama
