#include "session/session_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "device/attention.h"
#include "device/context_plan.h"
#include "device/exact.h"
#include "device/fit.h"
#include "device/offload.h"
#include "device/type_speed.h"
#include "draft/block/block_drafter.h"
#include "draft/head/head_drafter.h"
#include "draft/model/assistant_drafter.h"
#include "engine/target/local_target.h"
#include "gguf/adapter_file.h"
#include "gguf/gguf_file.h"
#include "gguf/head_file.h"
#include "gguf/projector_file.h"
#include "llama/backend.h"
#include "llama/kv_type.h"
#include "session/calibration.h"
#include "session/drafting.h"
#include "specllama/device.h"
#include "specllama/error.h"
#include "system/free_processors.h"

namespace specllama {

namespace {

// The headers of the models' files.
struct Headers {
    Header target;
    std::optional<Header> draft;
    // Identifies the target's adapters; "": none.
    std::string adapters;
    std::optional<Projector> projector;
};

Headers read_headers(const SessionOptions& options) {
    Headers headers{check_gguf(options.model.path), {}, {}, {}};
    if (headers.target.is_head())
        throw ModelError("Cannot use " + options.model.path + " as a model: it is " +
                         headers.target.head_name() + ", which drafts for another model.");
    headers.adapters = add_adapters(options.model, options.draft.mtp, headers.target);
    if (options.draft.mtp) {
        if (const std::string fault = mtp_fault(options.model.path); !fault.empty())
            throw ModelError(options.model.path + " cannot draft for itself: " + fault + ".");
    } else if (options.draft.any()) {
        headers.draft = check_gguf(options.draft.path);
    }
    if (!options.media.mmproj.empty()) {
        headers.projector = check_projector(options.media.mmproj);
        // Encoding an image may not give the same bits every time.
        if (options.exact == Switch::on)
            throw InvalidArgument(
                "A session with a projector (mmproj) is not exact; leave out exact, or mmproj.");
    }
    return headers;
}

// Whether anything is drafted, by drafters or by clients; make_drafters then makes at least one
// drafter.
bool drafts(const SessionOptions& options, const Drafter* drafter) {
    return drafter != nullptr || options.ngram || options.draft.any() || !options.corpus.empty() ||
           memory_bytes(options) > 0 || options.verifies;
}

// From this many requests on, a row of a draft costs about as much as a request's own row, so cheap
// drafts save next to nothing (measured on CPUs, docs/measured/figures.md).
constexpr int kManyRequests = 16;

// Whether drafts save less than separate memories do. In separate memories, attention does not pass
// over the cells of other requests, but only drafts of equal length can be verified together.
// Drafts of a fixed length, and those of a draft model, are made in any case. Those of clients are
// not counted, because most requests to a server have none.
bool drafts_seldom(const SessionOptions& options, const Drafter* drafter) {
    return options.context.n_seq >= kManyRequests && drafter == nullptr && !options.draft.any() &&
           !options.spec_length && !options.spec_tree && offload_devices(options.model).empty();
}

// Maximum number of rows of logits per sequence in a decode of the target.
//
// With a drafter, some memories keep snapshots of their state, and llama.cpp then uses another
// kernel (for the gated delta net of Qwen3.5). An exact session without a drafter keeps one
// snapshot, too, so that both give the same bits.
int count_logits(bool drafts, bool exact, const Tree::Limits& wanted) {
    return drafts ? wanted.nodes + 1 : 1 + exact;
}

// Replaces the draft model's file by a copy in other types, if that is faster. A head goes to the
// devices of its target.
std::unique_ptr<BackgroundConversion> resolve_draft_types(const SessionOptions& options,
                                                          Headers& headers, DraftPlan& draft) {
    const ModelOptions& where = headers.draft->is_head() ? options.model : draft.model;
    DraftTypes types = choose_draft_types(*headers.draft,
                                          {.type = draft.type,
                                           .on_gpu = !offload_devices(where).empty(),
                                           .n_threads = resolve_threads(draft.context),
                                           .target_bytes = headers.target.weights.total},
                                          options.load_progress);
    headers.draft = std::move(types.header);
    draft.model.path = headers.draft->path;
    return std::move(types.later);
}

// Resolves the open options except exactness, in the plans. n_draft_logits: most rows of logits per
// sequence in a decode of the draft model.
void resolve_options(const Headers& headers, TargetPlan& plan, DraftPlan* draft,
                     int n_draft_logits) {
    if (draft != nullptr) draft->context.n_batch = plan.context.n_batch;
    // A head may use its target's embeddings and output, which llama.cpp finds only if both are on
    // the same devices.
    const auto place_head = [&] {
        if (draft == nullptr || !headers.draft || !headers.draft->is_head()) return;
        draft->model.n_gpu_layers = plan.model.n_gpu_layers;
        draft->model.device = plan.model.device;
        draft->model.rpc = plan.model.rpc;
    };
    place_head();
    // Called for their errors, which name the options. The target's come first, because the draft
    // model's may be copies of them.
    offload_devices(plan.model);
    if (draft != nullptr && headers.draft) offload_devices(draft->model, "draft_");
    resolve_memory(headers.target, plan, headers.draft ? &*headers.draft : nullptr, n_draft_logits,
                   draft);
    place_head();
    if (draft != nullptr) draft->context.n_ctx = plan.context.n_ctx;
}

void add_draft_model(const SessionOptions& options, const DraftPlan& draft, const Headers& headers,
                     const std::shared_ptr<const Model>& target, Drafters& drafters) {
    if (!headers.draft || headers.draft->is_prediction ||
        headers.draft->traits.kind == Architecture::Kind::eagle3) {
        const auto head = std::make_shared<HeadDrafter>(
            target, draft, headers.draft ? &*headers.draft : nullptr, options.load_progress);
        drafters.reader = head;
        drafters.all.push_back(head);
    } else if (headers.draft->traits.kind == Architecture::Kind::assistant) {
        const auto assistant = std::make_shared<AssistantDrafter>(target, draft, *headers.draft,
                                                                  options.load_progress);
        drafters.reader = assistant;
        drafters.all.push_back(assistant);
    } else if (headers.draft->traits.kind == Architecture::Kind::block) {
        const auto block = std::make_shared<BlockDrafter>(
            target, draft, *headers.draft, longest_draft(options), options.load_progress);
        drafters.reader = block;
        drafters.all.push_back(block);
    } else {
        auto model =
            Model::load(draft.model, Kernels::fastest, *headers.draft, options.load_progress);
        check_vocabulary(*model, *target, "The draft model");
        drafters.add(std::move(model), draft, longest_draft(options));
    }
}

// Loads the costs of the target's decodes and, if lengths are planned, of the draft model's, as
// earlier sessions have learned them. Returns the keys of these curves.
CurveKeys load_costs(const std::optional<DraftPlan>& draft, const Headers& headers,
                     const TargetPlan& plan, Context& context, ModelDrafter* draft_model,
                     Speculator& speculator) {
    const std::vector<CostCurve*> curves = speculator.curves();
    if (curves.empty()) return {};
    Planner* const planner = speculator.planner();
    CurveKeys keys = {
        curve_key(headers.target, plan.model, plan.context, context.model().kernels())};
    if (planner != nullptr && draft_model != nullptr)
        keys.push_back(curve_key(*headers.draft, draft->model, {draft->context},
                                 draft_model->context().model().kernels()));
    load_curves(keys, curves);
    if (planner == nullptr) return keys;
    if (keys.size() > 1) planner->restore(load_draft_record(keys));
    planner->set_threads(context.n_threads());
    return keys;
}

std::optional<std::pair<int, int>> known_widths(const Header& header, const TargetPlan& plan) {
    const Widths widths = same_widths(header, plan);
    if (widths.most == 1) {
        inform("Decodes of different widths may give a token different low bits.");
        return {};
    }
    inform("Decodes of " + std::to_string(widths.least) + " to " + std::to_string(widths.most) +
           " tokens give a token the same bits" + (plan.exact ? "; the session is exact." : "."));
    return {{widths.least, widths.most}};
}

// Properties that images and sounds in a KV memory depend on besides their content; "": none.
std::string in_words(const std::optional<Projector>& projector, const MediaOptions& media) {
    if (!projector) return "";
    const auto tokens = [](const std::optional<int>& n) { return n ? std::to_string(*n) : "any"; };
    return ", projector " + projector->type + " of " + std::to_string(projector->n_bytes) +
           " bytes, " + tokens(media.image_min_tokens) + " to " + tokens(media.image_max_tokens) +
           " tokens of an image";
}

// One line with everything that the bytes of a KV memory in n_parts parts depend on, except the
// values of the weights.
std::string state_key(const Headers& headers, const ContextOptions& context,
                      const MediaOptions& media, int n_ctx, int n_parts, bool exact) {
    const Header& header = headers.target;
    const auto number = [](auto value) { return std::to_string(static_cast<std::int64_t>(value)); };
    return "llama.cpp " + std::string(llama_cpp_version()) + ", weights of " +
           number(header.weights.total) + " bytes" + headers.adapters + ", " +
           number(header.n_vocab) + " tokens, heads of " + number(header.head_size) +
           ", memory in " + number(n_parts) + " parts of type " + kv_type_name(context) +
           ", flash attention " + number(context.flash_attn) +
           (header.long_rope ? ", turned for " + number(n_ctx) + " tokens" : "") +
           in_words(context.rope) + in_words(headers.projector, media) +
           (exact ? ", exact" : ", not exact");
}

SessionInfo session_info(const Model& model, const Context& context, Engine& engine,
                         const Vision* vision) {
    const Vocab& vocab = model.vocab();
    const Speculator& speculator = engine.speculator();
    return {.description = model.description(),
            .n_vocab = vocab.size(),
            .vocabulary = vocab.fingerprint(),
            .bos = vocab.bos(),
            .eos = vocab.eos(),
            .fim = vocab.fim(),
            .chat_template = model.chat_template(),
            .sees = vision != nullptr && vision->sees(),
            .audio_rate = vision == nullptr ? 0 : vision->audio_rate(),
            .n_ctx = context.n_ctx(),
            .n_seq = context.n_seq(),
            .n_threads = context.params().n_threads,
            .cpu_kernels = model.kernels(),
            .max_draft_length = engine.limits().depth,
            .max_candidates = speculator.tree_limits().siblings,
            .max_draft_tokens = engine.limits().nodes,
            .drafts_by_model = speculator.drafts_by_model(),
            .drafts_by_ngram = speculator.drafts_by_ngram()};
}

}  // namespace

SessionParts build_session(SessionOptions options, std::shared_ptr<Drafter> drafter) {
    check(options, drafter.get());
    free_threads(1);  // starts to observe the load by other programs
    Headers headers = read_headers(options);
    if (headers.projector) options.exact = Switch::off;
    TargetPlan plan = resolve_exactness(headers.target, options);
    const bool anybody = drafts(options, drafter.get());
    const Tree::Limits wanted = tree_limits(options, anybody ? kMaxSpecLength : 1);
    plan.n_logits = count_logits(anybody, plan.exact, wanted);
    if (!anybody || drafts_seldom(options, drafter.get())) plan.context.per_sequence_streams = true;
    std::optional<DraftPlan> draft = plan_draft(options);
    if (headers.projector) plan.projector_bytes = projector_bytes(options.media, plan.model);
    std::unique_ptr<BackgroundConversion> conversion;
    if (headers.draft) conversion = resolve_draft_types(options, headers, *draft);
    resolve_options(headers, plan, draft ? &*draft : nullptr, longest_draft(options));
    // Exact sessions give the same bits anyway. Several requests change each other's widths. The
    // cost on a GPU is not known.
    plan.context.last_alone =
        !plan.exact && plan.context.n_seq == 1 && offload_devices(plan.model).empty();
    std::shared_ptr<const Model> model = Model::load(plan.model, plan.kernels, headers.target,
                                                     options.load_progress, options.draft.mtp);
    std::shared_ptr<Vision> vision;
    if (headers.projector)
        vision = std::make_shared<Vision>(model, options.media, resolve_threads(plan.context),
                                          options.context.flash_attn, options.load_progress);
    if (is_verbose() && offload_devices(plan.model).empty())
        if (const std::string slow = slow_types(headers.target); !slow.empty())
            inform("The model's types: " + slow);
    Drafters drafters = make_drafters(options, model->vocab(), std::move(drafter));
    if (draft) add_draft_model(options, *draft, headers, model, drafters);
    auto context = std::make_unique<Context>(model, plan.context, plan.n_logits, wanted.leaves - 1);
    // A head has no hidden states of tokens from other drafters.
    const bool checks_candidates = !drafters.reader;
    auto local = std::make_unique<LocalTarget>(*context, std::move(drafters.reader), vision);
    const Memory& memory = context->memory();
    const int most_leaves = std::min(wanted.leaves, 1 + memory.n_branches());
    Planner planner(memory.per_sequence_streams(), most_rows_together(plan.model, plan.context));
    std::unique_ptr<Speculator> speculator =
        make_speculator(options, drafters, tree_limits(options, most_leaves), model->vocab(),
                        std::move(planner), checks_candidates);
    auto engine = std::make_unique<Engine>(std::move(local), std::move(speculator));
    if (plan.context.never_alone && memory.n_cuttable() == 0)
        throw InvalidArgument("Exact decoding is not possible for " + options.model.path +
                              ": it has float weights, and a memory that cannot be cut back.");
    CurveKeys curve_keys =
        load_costs(draft, headers, plan, *context, drafters.model.get(), engine->speculator());
    Calibration calibration(context.get(), plan.n_logits, drafters.model, longest_draft(options),
                            engine->speculator());
    if (memory.needs_checkpoints()) calibration.run();
    SessionInfo info = session_info(*model, *context, *engine, vision.get());
    const int n_parts = memory.per_sequence_streams() ? info.n_seq : 1;
    std::shared_ptr<const Vocabulary> vocabulary(model, &model->vocab());
    return {.model = std::move(model),
            .vocabulary = std::move(vocabulary),
            .vision = std::move(vision),
            .context = std::move(context),
            .engine = std::move(engine),
            .conversion = std::move(conversion),
            .curve_keys = std::move(curve_keys),
            .calibration = std::move(calibration),
            .history = std::move(drafters.history),
            .history_file = std::move(drafters.history_file),
            .context_plan = plan.context,
            .info = std::move(info),
            .cache_bytes = in_bytes(options.cache_ram),
            .exact = plan.exact,
            .same_widths = known_widths(headers.target, plan),
            .state_key = state_key(headers, plan.context, options.media, plan.context.n_ctx,
                                   n_parts, plan.exact)};
}

}  // namespace specllama
