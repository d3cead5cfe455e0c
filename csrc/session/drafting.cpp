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
#include "specllama/error.h"
#include "text/vocabulary.h"

namespace specllama {

namespace {

// Most leaves of the planned trees of all sequences: llama.cpp keeps a row of logits for each.
constexpr int kPlannedLeaves = 16;

// Drafts nothing. It prepares a session without a drafter for verifying the drafts of its requests.
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
            "The drafter has a step cost, like the draft model, but a session can have only one "
            "such drafter; leave one of them out.");
    if (options.memory == 0 && !options.memory_file.empty())
        throw InvalidArgument("memory_file is " + options.memory_file +
                              ", but memory is 0; set memory to 1 MiB or more, or leave it out.");
    check(options.context);
    // Checked here, where it is still known which option the type belongs to.
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
    // Only the target uses RPC servers: a draft over a network is too slow. A draft model without
    // layers on a GPU needs no devices.
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
    // With a fixed length, a draft model replaces these drafters, unless drafts are trees.
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
        // Clients of a server plan with the cost of its decodes.
        std::optional<CostCurve> cost;
        if (options.verifies) cost = planner.cost();
        return std::make_unique<FixedSpeculator>(std::move(drafters.all), longest_draft(options),
                                                 limits, vocab, std::move(cost));
    }
    return std::make_unique<PlannedSpeculator>(std::move(drafters.all), longest_draft(options),
                                               limits, vocab, std::move(planner),
                                               checks_candidates);
}

}  // namespace specllama
