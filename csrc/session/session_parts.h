#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "draft/history/history.h"
#include "draft/history/history_file.h"
#include "engine/engine.h"
#include "runtime/context.h"
#include "runtime/drafting/draft_types.h"
#include "runtime/model.h"
#include "session/calibration.h"
#include "session/cost_cache.h"
#include "specllama/session_info.h"
#include "specllama/session_options.h"
#include "vision/vision.h"

namespace specllama {

class Drafter;
class Verifier;

// The parts of a session. Each depends on those before it.
struct SessionParts {
    // Null if the target is remote, like `context`.
    std::shared_ptr<const Model> model;
    std::shared_ptr<const Vocabulary> vocabulary;
    std::shared_ptr<const Vision> vision;  // null: the model reads text only
    std::unique_ptr<Context> context;
    std::unique_ptr<Engine> engine;
    // Null: the draft model is not converted.
    std::unique_ptr<BackgroundConversion> conversion;
    CurveKeys curve_keys;
    Calibration calibration;  // of the decodes of `context` and of the draft model
    // Texts of requests for later ones to draft from; null: none.
    std::shared_ptr<History> history;
    std::optional<HistoryFile> history_file;
    // The plan of `context`.
    ContextPlan context_plan;
    SessionInfo info;
    // See PromptCache.
    std::size_t cache_bytes = 0;
    // See TargetPlan::exact.
    bool exact = false;
    // See Stats::same_widths.
    std::optional<std::pair<int, int>> same_widths;
    // SavedState::key of the session's states.
    std::string state_key;
};

// Checks and resolves the options, loads the models, and measures the time of decodes if that is
// not possible later (see Calibration). drafter: asked before all others, or last if it is
// sequential (Drafter::has_step_cost); null: none. Throws what Session's constructor throws.
SessionParts build_session(SessionOptions options, std::shared_ptr<Drafter> drafter);

// The same for a remote target. Only the options about drafts and n_seq are used.
SessionParts build_session(SessionOptions options, std::shared_ptr<Verifier> verifier,
                           std::shared_ptr<Drafter> drafter);

}  // namespace specllama
