#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llama/gguf_file.h"
#include "plan/planner.h"
#include "specllama/config.h"

namespace specllama {

// What the time of a decode depends on, on one line: the key of its cost curve.
// kernels: of the model's weights.
std::string curve_key(const Header& header, const ModelOptions& model,
                      const ContextOptions& context, const std::string& kernels);

// What a session has learned of the time of decodes, kept for the next session with the same models
// on the same machine: a small text file for each curve, in the cache folder. One that cannot be
// read or written is no error: the curve is learned anew. The curves are the planner's own.
class KeptCurves {
 public:
    // None are kept.
    KeptCurves() = default;
    // By the keys of the target's curve and of the draft model's, if there is one.
    explicit KeptCurves(std::vector<std::string> keys) : keys_(std::move(keys)) {}

    // Restores what an earlier session has kept.
    void load(Planner& planner) const;
    // Keeps the curves of which anything was measured.
    void keep(Planner& planner) const;

 private:
    std::vector<std::string> keys_;  // none; of the target's curve; and of the draft model's
};

}  // namespace specllama
