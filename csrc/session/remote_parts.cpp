#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "device/fit.h"
#include "device/offload.h"
#include "engine/target/remote_target.h"
#include "engine/target/remote_vocabulary.h"
#include "gguf/gguf_file.h"
#include "runtime/drafting/draft_types.h"
#include "runtime/model.h"
#include "session/drafting.h"
#include "session/session_parts.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Adds the draft model for a remote target. The memory is planned without a target.
void add_draft_model(const SessionOptions& options, const SessionInfo& about, DraftPlan draft,
                     Drafters& drafters) {
    if (draft.mtp)
        throw InvalidArgument(
            "draft=\"mtp\" needs the model in this process; use it on the server instead.");
    Header header = check_gguf(draft.model.path);
    if (header.is_head())
        throw InvalidArgument("The draft " + draft.model.path +
                              " reads states of the target, which a server does not send; take a "
                              "draft model, or let the server draft with it.");
    header = choose_draft_types(header,
                                {.type = draft.type,
                                 .on_gpu = !offload_devices(draft.model, "draft_").empty(),
                                 .n_threads = resolve_threads(draft.context)},
                                options.load_progress)
                 .header;
    draft.model.path = header.path;
    TargetPlan plan;
    plan.model = draft.model;
    static_cast<ContextOptions&>(plan.context) = draft.context;
    plan.context.n_ctx = about.n_ctx;
    plan.n_logits = longest_draft(options);
    resolve_memory(header, plan, nullptr, plan.n_logits, nullptr);
    draft.model = plan.model;
    draft.context = plan.context;
    auto model = Model::load(draft.model, Kernels::fastest, header, options.load_progress);
    if (model->vocab().fingerprint() != about.vocabulary || model->vocab().size() != about.n_vocab)
        throw ModelError("The draft model (" + model->description() +
                         ") has another vocabulary than the target (" + about.description +
                         "); use a model with the same vocabulary.");
    drafters.add(std::move(model), draft, longest_draft(options));
}

}  // namespace

SessionParts build_session(SessionOptions options, std::shared_ptr<Verifier> verifier,
                           std::shared_ptr<Drafter> drafter) {
    check(options, drafter.get());
    const VerifierInfo& about = verifier->info();
    options.spec_tree =
        std::max(std::min(options.spec_tree.value_or(1), about.session.max_candidates), 1);
    auto vocabulary = std::make_shared<const RemoteVocabulary>(verifier);
    Drafters drafters = make_drafters(options, *vocabulary, std::move(drafter));
    if (const std::optional<DraftPlan> draft = plan_draft(options))
        add_draft_model(options, about.session, *draft, drafters);
    Planner planner;
    if (std::ranges::any_of(about.decode_seconds, [](double seconds) { return seconds > 0; }))
        planner.cost().restore({.seconds = about.decode_seconds});
    std::unique_ptr<Speculator> speculator =
        make_speculator(options, drafters, tree_limits(options, kMaxSpecLength), *vocabulary,
                        std::move(planner), true);
    auto engine = std::make_unique<Engine>(std::make_unique<RemoteTarget>(std::move(verifier)),
                                           std::move(speculator));
    SessionInfo info = about.session;
    info.n_seq = options.context.n_seq;
    info.max_draft_length = engine->limits().depth;
    info.max_candidates = engine->speculator().tree_limits().siblings;
    info.max_draft_tokens = engine->limits().nodes;
    info.drafts_by_model = engine->speculator().drafts_by_model();
    info.drafts_by_ngram = engine->speculator().drafts_by_ngram();
    SessionParts parts;
    parts.history = std::move(drafters.history);
    parts.history_file = std::move(drafters.history_file);
    parts.vocabulary = std::move(vocabulary);
    parts.calibration =
        Calibration(nullptr, 0, drafters.model, longest_draft(options), engine->speculator());
    parts.engine = std::move(engine);
    parts.info = std::move(info);
    return parts;
}

}  // namespace specllama
