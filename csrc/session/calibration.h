#pragma once

#include "llama/context.h"
#include "plan/cost_curve.h"

namespace specllama {

// Measures what decodes of up to n_max tokens cost, before the first request, unless a curve of an
// earlier session holds, by a few decodes: widths in the order of CostCurve::next_probe, random
// tokens, an empty context. Takes a fraction of a second, beside a first decode that only warms up,
// on a GPU one of each width. The memory is empty before and after. A decode that fails is no error
// here: what is not measured is learned from the rounds.
void calibrate(Context& context, int n_max, CostCurve& curve);

}  // namespace specllama
