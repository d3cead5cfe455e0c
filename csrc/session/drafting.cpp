#include "session/drafting.h"

#include <algorithm>
#include <string>
#include <utility>

#include "draft/corpus/corpus_drafter.h"
#include "draft/history/history_drafter.h"
#include "draft/ngram/ngram_drafter.h"
#include "engine/speculator/fixed_speculator.h"
#include "engine/speculator/planned_speculator.h"
#include "llama/kv_type.h"
#include "runtime/model.h"
#include "session/calibration.h"
#include "specllama/error.h"
#include "text/vocabulary.h"

namespace specllama {

namespace {

// Most leaves of the planned trees of all sequences: llama.cpp holds a row of logits for each.
constexpr int kPlannedLeaves = 16;

// Drafts nothing. A session whose requests bring their drafts, and that has no drafter of its own,
// is laid out for verifying by this one.
class NoDrafter final : public CoreDrafter {
 public:
    void propose(std::span<DraftRequest>) override {}
};

}  // namespace

int longest_draft(const SessionOptions& options) {
    return options.spec_length.value_or(kMaxSpecLength);
}

Tree::Limits tree_limits(const SessionOptions& options, int most_leaves) {
    const int longest = longest_draft(options);
    const int siblings = options.spec_tree.value_or(1);
    const int nodes = std::min(longest * siblings, kMaxSpecLength);
    const int planned = std::max(kPlannedLeaves / options.context.n_seq, 1);
    const int leaves = std::min(options.spec_length ? nodes : planned, most_leaves);
    if (siblings == 1 || leaves == 1) return {.nodes = longest};
    return {.nodes = nodes, .leaves = leaves, .siblings = siblings};
}

void check(const SessionOptions& options, const Drafter* drafter) {
    check_options(options);
    const int nodes = longest_draft(options) * options.spec_tree.value_or(1);
    if (options.spec_length && nodes > kMaxSpecLength)
        throw InvalidArgument("spec_length times spec_tree must be " +
                              std::to_string(kMaxSpecLength) + " at most, not " +
                              std::to_string(nodes) + ".");
    if (options.draft.any() && drafter != nullptr && drafter->has_step_cost())
        throw InvalidArgument(
            "The drafter's tokens take time, and so do the draft model's; give the session one of "
            "them.");
    if (options.memory == 0 && !options.memory_file.empty())
        throw InvalidArgument("memory_file is " + options.memory_file +
                              ", but memory is 0; give it some MiB, or leave it out.");
    check(options.context);
    // Here it is still known whose type is none.
    kv_types(kv_type_name(options.context));
    if (options.draft.kv_type) kv_types(*options.draft.kv_type, "draft_");
}

std::optional<DraftPlan> plan_draft(const SessionOptions& options) {
    const DraftModelOptions& draft = options.draft;
    if (!draft.any()) return {};
    DraftPlan plan{draft, {}, options.context};
    plan.model.path = draft.path;
    plan.model.load_mode = options.model.load_mode;
    plan.model.n_gpu_layers = draft.n_gpu_layers ? draft.n_gpu_layers : options.model.n_gpu_layers;
    // Only the target uses RPC servers: a draft that comes over a network is worth little. And a
    // draft model without layers on a GPU needs none.
    const bool like_target = options.model.rpc.empty() && draft.n_gpu_layers != 0;
    plan.model.device = draft.device.value_or(like_target ? options.model.device : "");
    plan.context.n_threads = draft.n_threads.value_or(options.context.n_threads);
    if (draft.kv_type) plan.context.kv_type = draft.kv_type;
    return plan;
}

std::size_t memory_bytes(const SessionOptions& options) {
    const int by_default = options.memory_file.empty() ? 0 : kDefaultMemory;
    return static_cast<std::size_t>(options.memory.value_or(by_default)) << 20;
}

Drafters make_drafters(const SessionOptions& options, const Vocabulary& vocab,
                       std::shared_ptr<Drafter> given) {
    const bool draft = options.draft.any();
    Drafters drafters;
    const bool has_step_cost = given && given->has_step_cost();
    // With a fixed length, a draft model takes the place of these drafters, unless drafts are
    // trees.
    const bool branches = options.spec_tree.value_or(1) > 1;
    if (!draft || !options.spec_length || branches) {
        if (given && !has_step_cost)
            drafters.all.push_back(std::make_shared<ExternalDrafter>(std::move(given)));
        if (options.ngram) drafters.all.push_back(std::make_shared<NGramDrafter>(*options.ngram));
        if (!options.corpus.empty())
            drafters.all.push_back(
                std::make_shared<CorpusDrafter>(options.corpus, vocab.text_fingerprint()));
        if (const std::size_t n_bytes = memory_bytes(options); n_bytes > 0) {
            drafters.history = std::make_shared<History>(
                static_cast<std::int64_t>(n_bytes / History::kBytesPerToken));
            if (!options.memory_file.empty()) {
                drafters.history_file.emplace(options.memory_file, vocab.size(),
                                              vocab.text_fingerprint());
                drafters.history_file->read(*drafters.history);
            }
            drafters.all.push_back(std::make_shared<HistoryDrafter>(drafters.history));
        }
    }
    // The sequential drafter is the last, and there is at most one.
    if (has_step_cost) drafters.all.push_back(std::make_shared<ExternalDrafter>(std::move(given)));
    if (drafters.all.empty() && !draft && options.verifies)
        drafters.all.push_back(std::make_shared<NoDrafter>());
    return drafters;
}

void Drafters::add(std::shared_ptr<const Model> draft_model, const DraftPlan& plan, int longest) {
    model = std::make_shared<ModelDrafter>(std::move(draft_model), plan, longest);
    all.push_back(model);
}

std::unique_ptr<Speculator> make_speculator(const SessionOptions& options, Drafters& drafters,
                                            const Tree::Limits& limits, const Vocabulary& vocab,
                                            Planner planner, bool checks_candidates) {
    if (options.spec_length || drafters.all.empty()) {
        // Clients of a server plan by what its decodes cost.
        std::optional<CostCurve> cost;
        if (options.verifies) cost = planner.cost();
        return std::make_unique<FixedSpeculator>(std::move(drafters.all), longest_draft(options),
                                                 limits, vocab, std::move(cost));
    }
    return std::make_unique<PlannedSpeculator>(std::move(drafters.all), longest_draft(options),
                                               limits, vocab, std::move(planner),
                                               checks_candidates);
}

void measure(ModelDrafter& draft_model, const SessionOptions& options, Planner& planner) {
    draft_model.context().adapt_threads();
    CostCurve& curve = planner.draft_cost().curves().now();
    calibrate(draft_model.context(), longest_draft(options), curve);
    curve.width_switch().set_seconds(0);  // it nearly always makes one token at a time
}

}  // namespace specllama
