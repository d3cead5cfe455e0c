#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "device/context_plan.h"
#include "draft/head/state_reader.h"
#include "draft/history/history.h"
#include "draft/history/history_file.h"
#include "draft/model/model_drafter.h"
#include "draft/tree.h"
#include "engine/speculator/speculator.h"
#include "specllama/session_options.h"

namespace specllama {

class Drafter;

// What of a session's making concerns drafts, wherever its target is.

struct Drafters {
    std::vector<std::shared_ptr<CoreDrafter>> all;
    // The last of `all`, if it is of this kind; else null.
    std::shared_ptr<ModelDrafter> model;
    std::shared_ptr<StateReader> reader;
    // What HistoryDrafter drafts from; null: nothing is remembered.
    std::shared_ptr<History> history;
    std::optional<HistoryFile> history_file;

    void add(std::shared_ptr<const Model> draft_model, const DraftPlan& plan, int longest);
};

// Most tokens in a row of a draft.
int longest_draft(const SessionOptions& options);

// Limits of drafts, with most_leaves leaves at most. Drafts are trees only if the options ask for
// them, since trees have not been seen to save any time (docs/internals/trees.md).
Tree::Limits tree_limits(const SessionOptions& options, int most_leaves);

// Throws InvalidArgument.
void check(const SessionOptions& options, const Drafter* drafter);

// What is known of the draft model before files are read; none: there is none.
std::optional<DraftPlan> plan_draft(const SessionOptions& options);

// Bytes of the memory of earlier requests; 0: there is none.
std::size_t memory_bytes(const SessionOptions& options);

// All drafters but the draft model.
Drafters make_drafters(const SessionOptions& options, const Vocabulary& vocab,
                       std::shared_ptr<Drafter> given);

// Takes the drafters over. checks_candidates: see PlannedSpeculator.
std::unique_ptr<Speculator> make_speculator(const SessionOptions& options, Drafters& drafters,
                                            const Tree::Limits& limits, const Vocabulary& vocab,
                                            Planner planner, bool checks_candidates);

// Gives the planner the time of the draft model's decodes.
void measure(ModelDrafter& draft_model, const SessionOptions& options, Planner& planner);

}  // namespace specllama
