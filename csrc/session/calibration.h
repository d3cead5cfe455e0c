#pragma once

#include <memory>
#include <span>

#include "draft/model/model_drafter.h"
#include "engine/sequence.h"
#include "engine/speculator/speculator.h"
#include "runtime/context.h"

namespace specllama {

// Measures once in a session what its decodes cost: those of the target and, if lengths are
// planned, of the draft model. A curve of an earlier session is measured again only if a few
// decodes show that it does not hold. On a GPU the cost of a change of width is measured, too (see
// WidthSwitch). It takes a fraction of a second in addition to a first decode for warm-up.
class Calibration {
 public:
    // Nothing is measured.
    Calibration() = default;
    // target and speculator must outlive this. target: null if it is remote. n_logits: maximum
    // number of tokens of the target's measured decodes, longest: of the draft model's.
    // draft_model: null: none. Call it after the curves of earlier sessions are loaded.
    Calibration(Context* target, int n_logits, std::shared_ptr<ModelDrafter> draft_model,
                int longest, Speculator& speculator);

    // Whether to call run() before the next round of these sequences: after the first token of a
    // short prompt, and before a long one is read. No draft is planned before.
    bool due(std::span<Sequence* const> sequences) const;
    // To be called between rounds. Returns false if it was done already. Random tokens are decoded
    // after the shortest text in the memory, and cut off again. A memory that needs checkpoints is
    // measured only while a sequence in it is empty. A failed decode is not an error here: missing
    // costs are learned from the rounds.
    bool run();

 private:
    Context* target_ = nullptr;
    int n_logits_ = 0;
    std::shared_ptr<ModelDrafter> draft_model_;
    int longest_ = 0;
    Speculator* speculator_ = nullptr;
    // Whether the curves are of an earlier session.
    bool target_is_kept_ = false;
    bool draft_is_kept_ = false;
    bool done_ = true;
};

}  // namespace specllama
