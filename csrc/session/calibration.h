#pragma once

#include "plan/cost_curve.h"
#include "runtime/context.h"

namespace specllama {

// Measures the cost of decodes of up to n_max tokens before the first request, unless a few decodes
// show that the curve of an earlier session still holds. Widths come in the order of
// CostCurve::next_probe, tokens are random, and the context is empty. On a GPU the cost of a change
// of width is measured, too (see WidthSwitch). It takes a fraction of a second in addition to a
// first decode for warm-up. The memory is empty before and after. A failed decode is not an error
// here: missing costs are learned from the rounds.
void calibrate(Context& context, int n_max, CostCurve& curve);

}  // namespace specllama
