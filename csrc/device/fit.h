#pragma once

#include <string>

#include "device/context_plan.h"
#include "gguf/gguf_file.h"

namespace specllama {

// Compares the memory that the target and the draft model (null: none) need with the free memory of
// their devices, and resolves the contexts: the target's in `plan`, the draft model's in
// draft_plan. n_draft_logits: most rows of logits of each sequence in a decode of the draft model.
//
// - An open n_ctx is set to the default or, with a notice, to what fits.
// - If not all layers fit on devices and their number is open, the split is set in plan.model, with
//   a notice.
// - An automatic flash_attn becomes off if flash attention is too slow for these heads and the
//   scores fit, too.
//
// Throws OutOfMemory, with the numbers, if the models do not fit. Warns about a draft model that is
// larger than the target.
void resolve_memory(const Header& target, TargetPlan& plan, const Header* draft, int n_draft_logits,
                    DraftPlan* draft_plan);

// Checks that another context of a loaded model fits the free memory of the model's device. Throws
// OutOfMemory otherwise, with the numbers, `who` needs them, and `advice` on what to do.
void check_memory(const Header& header, const ModelOptions& model, const ContextPlan& context,
                  int n_logits, const std::string& who, const std::string& advice);

}  // namespace specllama
