#pragma once

#include <string>
#include <vector>

#include "llama/gguf_file.h"
#include "plan/planner.h"
#include "specllama/config.h"

namespace specllama {

// What a session has learned of the time of decodes, kept for the next session with the same models
// on the same machine: a small text file for each curve, in the cache folder. One that cannot be
// read or written is no error: the curve is learned anew. The curves are the planner's own.

// What the time of a decode depends on, on one line: the key of its cost curve.
// kernels: of the model's weights.
std::string curve_key(const Header& header, const ModelOptions& model,
                      const ContextOptions& context, const std::string& kernels);

// Of the target's curve, and of the draft model's, if there is one; none: none are kept.
using CurveKeys = std::vector<std::string>;

// Restores what an earlier session has kept.
void load_curves(const CurveKeys& keys, Planner& planner);
// Keeps the curves of which anything was measured.
void keep_curves(const CurveKeys& keys, Planner& planner);

}  // namespace specllama
