#pragma once

#include "plan/cost_curve.h"
#include "runtime/context.h"

namespace specllama {

// Measures what decodes of up to n_max tokens cost, before the first request, unless a few decodes
// show that the curve of an earlier session still holds. Widths come in the order of
// CostCurve::next_probe, tokens are random, the context is empty; on a GPU also what a change of
// the width costs (see WidthSwitch). It takes a fraction of a second, beside a first decode to warm
// up. The memory is empty before and after. A decode that fails is no error here: what is not
// measured is learned from the rounds.
void calibrate(Context& context, int n_max, CostCurve& curve);

}  // namespace specllama
