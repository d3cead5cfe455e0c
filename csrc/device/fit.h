#pragma once

#include <string>

#include "device/context_plan.h"
#include "gguf/gguf_file.h"

namespace specllama {

// Compares what the target and the draft model (null: none) take with what is free on the devices
// that will hold them, and settles the contexts: the target's in `plan`, the draft model's in
// draft_plan. n_draft_logits: most rows of logits of each sequence in a decode of the
// draft model. If plan.context.n_ctx is left open (0), it becomes the default or, with a notice,
// what fits. If how many layers go to devices is left open, and not all fit, that is settled in
// plan.model, with a notice. A flash_attn that is automatic becomes off if flash attention
// is too slow for these heads and the scores fit, too. Throws OutOfMemory, with the numbers, if the
// models do not fit. Warns of a draft model that is larger than the target.
void resolve_memory(const Header& target, TargetPlan& plan, const Header* draft, int n_draft_logits,
                    DraftPlan* draft_plan);

// Compares what another context of a loaded model takes with what is free on the model's device.
// Throws OutOfMemory if it does not fit, with the numbers, who needs them, and advice what to do.
void check_memory(const Header& header, const ModelOptions& model, const ContextPlan& context,
                  int n_logits, const std::string& who, const std::string& advice);

}  // namespace specllama
