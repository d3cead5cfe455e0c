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

// The parts of building a session that concern drafts, for local and remote targets.

struct Drafters {
    std::vector<std::shared_ptr<CoreDrafter>> all;
    // The last of `all`, if it has this type; else null.
    std::shared_ptr<ModelDrafter> model;
    std::shared_ptr<StateReader> reader;
    // Texts for HistoryDrafter; null: nothing is remembered.
    std::shared_ptr<History> history;
    std::optional<HistoryFile> history_file;

    void add(std::shared_ptr<const Model> draft_model, const DraftPlan& plan, int longest);
};

// Maximum number of tokens in a row of a draft.
int longest_draft(const SessionOptions& options);

// Limits of drafts, with at most most_leaves leaves. Drafts are trees only if the options request
// them, because trees were not faster in measurements (docs/internals/trees.md).
Tree::Limits tree_limits(const SessionOptions& options, int most_leaves);

// Throws InvalidArgument.
void check(const SessionOptions& options, const Drafter* drafter);

// The plan of the draft model before files are read; nullopt: no draft model.
std::optional<DraftPlan> plan_draft(const SessionOptions& options);

// Bytes of the memory of earlier requests; 0: off.
std::size_t memory_bytes(const SessionOptions& options);

// All drafters except the draft model.
Drafters make_drafters(const SessionOptions& options, const Vocabulary& vocab,
                       std::shared_ptr<Drafter> given);

// Takes ownership of the drafters. checks_candidates: see PlannedSpeculator.
std::unique_ptr<Speculator> make_speculator(const SessionOptions& options, Drafters& drafters,
                                            const Tree::Limits& limits, const Vocabulary& vocab,
                                            Planner planner, bool checks_candidates);

}  // namespace specllama
