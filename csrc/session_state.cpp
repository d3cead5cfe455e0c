#include "session_state.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "draft/model_drafter.h"
#include "engine/clock.h"
#include "engine/utf8.h"
#include "llama/exact.h"
#include "llama/footprint.h"
#include "llama/gguf_file.h"
#include "plan/curve_file.h"
#include "specllama/device.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr SequenceId kOnlySequence = 0;

[[noreturn]] void throw_closed() { throw Closed("The session is closed; open a new one."); }

void check_tokens(TokenSpan tokens, const Vocab& vocab, const std::string& what) {
    const auto wrong =
        std::ranges::find_if(tokens, [&](Token token) { return !vocab.contains(token); });
    if (wrong != tokens.end())
        throw InvalidArgument("Token " + std::to_string(*wrong) + " in the " + what +
                              " is out of range; the model has " + std::to_string(vocab.size()) +
                              " tokens.");
}

void check_prompt(TokenSpan prompt, const Vocab& vocab, int n_ctx) {
    if (prompt.empty()) throw InvalidArgument("The prompt is empty; give at least one token.");
    check_tokens(prompt, vocab, "prompt");
    if (prompt.size() >= static_cast<std::size_t>(n_ctx))
        throw InvalidArgument("The prompt has " + std::to_string(prompt.size()) +
                              " tokens, which leaves no room in a context of " +
                              std::to_string(n_ctx) + "; shorten it or raise n_ctx.");
}

void check_options(const GenerateOptions& options, int n_room) {
    const int max_tokens = options.max_tokens.value_or(0);
    if (max_tokens < -1)
        throw InvalidArgument(
            "max_tokens must be 0 or more, or -1 for as many as the context holds, not " +
            std::to_string(max_tokens) + ".");
    if (max_tokens > n_room)
        throw InvalidArgument("max_tokens is " + std::to_string(max_tokens) +
                              ", but behind the prompt the context has room for " +
                              std::to_string(n_room) + "; lower it, or raise n_ctx.");
    for (const std::string& one : options.stop) {
        if (one.empty()) throw InvalidArgument("A stop string is empty; leave it out.");
        if (find_invalid_utf8(one) != std::string::npos)
            throw InvalidArgument("A stop string is not valid UTF-8.");
    }
    if (find_invalid_utf8(options.sampling.grammar) != std::string::npos)
        throw InvalidArgument("The grammar is not valid UTF-8.");
}

int common_prefix(TokenSpan a, TokenSpan b) {
    const auto [end, _] = std::ranges::mismatch(a, b);
    return static_cast<int>(end - a.begin());
}

// What the time of a decode depends on, on one line.
std::string curve_key(const Header& header, const ModelOptions& model,
                      const ContextOptions& context) {
    std::string key = "llama.cpp " + std::string(llama_cpp_version());
    for (const Device& device : list_devices()) key += ", " + device.description;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(header.weight_bytes), std::int64_t{header.n_vocab},
          std::int64_t{header.head_size}, std::int64_t{model.n_gpu_layers.value_or(-1)},
          std::int64_t{model.repack}, std::int64_t{context.n_threads},
          std::int64_t{context.never_alone}, static_cast<std::int64_t>(context.flash_attn)})
        key += ", " + std::to_string(number);
    return key + ", " + context.kv_type.value_or("f16");
}

}  // namespace

SessionState::SessionState(SessionOptions options, std::shared_ptr<Drafter> drafter) {
    const int spec_length = options.spec_length.value_or(kMaxSpecLength);
    if (spec_length < 1 || spec_length > kMaxSpecLength)
        throw InvalidArgument("spec_length must be from 1 to " + std::to_string(kMaxSpecLength) +
                              ", not " + std::to_string(spec_length) + ".");
    check(options.context);
    const Header header = check_gguf(options.model.path);
    std::optional<Header> draft_header;
    if (options.draft_model) draft_header = check_gguf(options.draft_model->model.path);
    exact_ = settle_exactness(header, options);
    settle_memory(header, draft_header ? &*draft_header : nullptr, options);

    model_ = Model::load(options.model, header, options.load_progress);
    std::vector<std::shared_ptr<Drafter>> drafters;
    if (drafter) drafters.push_back(std::move(drafter));
    if (options.draft_model) {
        options.draft_model->context.n_ctx = options.context.n_ctx;
        options.draft_model->context.n_batch = options.context.n_batch;
        drafters.push_back(std::make_shared<ModelDrafter>(
            *model_, *options.draft_model, *draft_header, spec_length, options.load_progress));
    }
    // With a drafter, memories that keep snapshots of their state take another kernel (the gated
    // delta net of Qwen3.5): where both must agree there is one snapshot without a drafter, too.
    const int n_logits = drafters.empty() ? 1 + exact_ : spec_length + 1;
    context_ = std::make_unique<Context>(model_, options.context, n_logits);
    engine_ = std::make_unique<Engine>(
        *context_, Speculator(std::move(drafters), options.spec_length, model_->vocab()));
    if (options.context.never_alone && context_->memory().n_cuttable() == 0)
        throw InvalidArgument("exact cannot be had for " + options.model.path +
                              ": it has float weights, and a memory that cannot be cut back.");
    Speculator& speculator = engine_->speculator();
    if (speculator.plans())
        curves_.emplace_back(curve_key(header, options.model, options.context),
                             &speculator.planner().cost());
    if (options.draft_model)
        curves_.emplace_back(
            curve_key(*draft_header, options.draft_model->model, options.draft_model->context),
            &speculator.draft_cost());
    for (const auto& [key, curve] : curves_)
        if (const auto points = load_curve(key)) curve->restore(*points);
    speculator.planner().draft_cost().restore(speculator.draft_cost().points());
    n_ctx_ = context_->n_ctx();
    n_threads_ = context_->n_threads();
}

std::shared_ptr<const Model> SessionState::model() const {
    const std::lock_guard lock(model_mutex_);
    if (!model_) throw_closed();
    return model_;
}

const SessionState& SessionState::open() const {
    if (closed_) throw_closed();
    return *this;
}

SessionState::~SessionState() { keep_curves(); }

// For the next session with these models on this machine.
void SessionState::keep_curves() {
    for (const auto& [key, curve] : curves_)
        if (curve->measured()) save_curve(key, curve->points());
    curves_.clear();
}

void SessionState::close() {
    const Gate::Work work(gate_);
    if (closed_) return;
    closed_ = true;
    retire();
    keep_curves();
    engine_.reset();
    context_.reset();
    const std::lock_guard lock(model_mutex_);
    model_.reset();
}

// Takes the active sequence out of the engine; what the KV memory holds of it stays for the next.
void SessionState::retire() {
    if (!active_) return;
    const std::shared_ptr<Sequence> sequence = std::move(active_);
    const TokenSpan held = sequence->tokens().first(sequence->n_cached());
    cached_.assign(held.begin(), held.end());
    engine_->end(*sequence);
}

std::shared_ptr<Sequence> SessionState::start(TokenSpan prompt, const GenerateOptions& options) {
    check_prompt(prompt, model()->vocab(), n_ctx());
    check_tokens(options.reference, model()->vocab(), "reference");
    check_tokens(options.replayed, model()->vocab(), "replayed text");
    check_options(options, n_ctx() - static_cast<int>(prompt.size()));
    const Gate::Work work(gate_, [&] {
        if (closed_) throw_closed();
        if (active_ && owner_ != std::this_thread::get_id())
            throw Busy(
                "The session has an unfinished generation in another thread; use one session "
                "per thread, or finish or cancel that generation.");
    });
    retire();

    double seconds = 0;
    int n_cached = 0;
    {
        const Timer timer(seconds);
        // The last token is always decoded: its logits are wanted.
        const int n_wanted = common_prefix(cached_, prompt.first(prompt.size() - 1));
        n_cached = context_->memory().rewind(kOnlySequence, n_wanted);
        cached_.resize(n_cached);
    }
    auto sequence = std::make_shared<Sequence>(kOnlySequence, model_->vocab(), prompt, options,
                                               context_->n_ctx(), n_cached);
    const Timer timer(sequence->stats.seconds.total);
    sequence->stats.exact = exact_;
    sequence->stats.seconds.prefill = sequence->stats.seconds.total = seconds;
    if (sequence->n_tokens_left() == 0) {
        sequence->finish(FinishReason::length);
        return sequence;
    }
    engine_->begin(*sequence, options.reference);
    active_ = sequence;
    owner_ = std::this_thread::get_id();
    return sequence;
}

bool SessionState::step(Sequence& sequence, std::vector<Chunk>& chunks) {
    chunks.clear();
    if (sequence.all_taken()) return false;
    const Gate::Work work(gate_);
    const Timer timer(sequence.stats.seconds.total);
    if (!sequence.done()) {
        if (closed_) throw_closed();
        if (active_.get() != &sequence)
            throw Closed("This stream was ended when the session began another generation.");
        Sequence* const sequences[] = {&sequence};
        engine_->step(sequences);
        if (sequence.done()) retire();
    }
    const Timer text_timer(sequence.stats.seconds.text);
    sequence.take_chunks(chunks);
    return true;
}

void SessionState::cancel(Sequence& sequence) {
    if (sequence.all_taken()) return;  // and another generation may be at work
    const Gate::Work work(gate_);
    if (sequence.done()) return;
    sequence.finish(FinishReason::none);
    if (active_.get() == &sequence) retire();
}

}  // namespace specllama
