#pragma once

#include "device/context_plan.h"
#include "device/kernels.h"
#include "specllama/config.h"

namespace specllama {

// How a session's target is loaded and its context made: what the options say, and what is settled
// where they leave it open.
struct TargetPlan {
    ModelOptions model;
    Kernels kernels = Kernels::fastest;
    ContextPlan context;
    // Most rows of logits of each sequence in a decode; whoever knows who drafts settles it.
    int n_logits = 1;
    // Whether speculation changes no token at all; see settle_exactness.
    bool exact = false;
};

}  // namespace specllama
