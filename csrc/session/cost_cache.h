#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/context_plan.h"
#include "gguf/gguf_file.h"
#include "plan/cost_curve.h"
#include "specllama/session_options.h"

namespace specllama {

// The cost curves that a session has learned, kept for the next session with the same
// models on the same machine: a small text file for each curve, in the cache folder. A file that
// cannot be read or written is no error: the curve is learned anew.

// The key of a cost curve: one line with all that the time of a decode depends on.
// kernels: see Model::kernels.
std::string curve_key(const Header& header, const ModelOptions& model, const ContextPlan& context,
                      const std::string& kernels);

// Keys of the target's curve and of the draft model's, if there is one; empty: no curve is kept.
using CurveKeys = std::vector<std::string>;

// Restores the curves that an earlier session has kept.
void load_curves(const CurveKeys& keys, std::span<CostCurve* const> curves);
// Keeps the curves with at least one measurement.
void store_curves(const CurveKeys& keys, std::span<CostCurve* const> curves);

}  // namespace specllama
