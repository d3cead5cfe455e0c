#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/context_plan.h"
#include "gguf/gguf_file.h"
#include "plan/cost_curve.h"
#include "plan/planner.h"
#include "specllama/session_options.h"

namespace specllama {

// The cost curves that a session has learned, and the record of its draft model, kept for the
// next session with the same models on the same machine. They are small text files in the cache
// folder. A file that cannot be read or written is not an error: its content is learned again.

// The key of a cost curve: one line with everything that the time of a decode depends on. kernels:
// see Model::kernels.
std::string curve_key(const Header& header, const ModelOptions& model, const ContextPlan& context,
                      const std::string& kernels);

// Keys of the target's curve and of the draft model's, if there is one; empty: no curve is kept.
using CurveKeys = std::vector<std::string>;

// Restores the curves of an earlier session.
void load_curves(const CurveKeys& keys, std::span<CostCurve* const> curves);
// Stores the curves with at least one measurement.
void store_curves(const CurveKeys& keys, std::span<CostCurve* const> curves);

// The record of the draft model with this target; an empty one: none is stored. `keys` has both
// keys.
DraftRecord load_draft_record(const CurveKeys& keys);
void store_draft_record(const CurveKeys& keys, const DraftRecord& record);

}  // namespace specllama
