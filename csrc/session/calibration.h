#pragma once

#include "plan/cost_curve.h"
#include "runtime/context.h"

namespace specllama {

// Measures the cost of decodes of up to n_max tokens. is_kept: the curve is of an earlier session,
// and is measured again only if a few decodes show that it does not hold. Widths come in the order
// of CostCurve::next_probe. On a GPU the cost of a change of width is measured, too (see
// WidthSwitch). It takes a fraction of a second in addition to a first decode for warm-up.
//
// Random tokens are decoded after the shortest text that the memory holds, and cut off again.
// Returns false, without a decode, if that is not possible, or if that text is so long that its own
// cost would hide the others. A failed decode is not an error here: missing costs are learned from
// the rounds.
bool calibrate(Context& context, int n_max, bool is_kept, CostCurve& curve);

}  // namespace specllama
