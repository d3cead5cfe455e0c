#include "session_state.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "draft/corpus_drafter.h"
#include "draft/model_drafter.h"
#include "engine/calibration.h"
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

// Adds the time of a step to what each of its requests took.
class SharedTimer {
 public:
    explicit SharedTimer(std::span<Sequence* const> sequences) : sequences_(sequences) {}
    ~SharedTimer() {
        timer_.reset();
        for (Sequence* sequence : sequences_) sequence->stats.seconds.total += seconds_;
    }
    SharedTimer(const SharedTimer&) = delete;
    SharedTimer& operator=(const SharedTimer&) = delete;

 private:
    std::span<Sequence* const> sequences_;
    double seconds_ = 0;
    std::optional<Timer> timer_{seconds_};
};

// What the time of a decode depends on, on one line.
std::string curve_key(const Header& header, const ModelOptions& model,
                      const ContextOptions& context, const std::string& kernels) {
    std::string key = "llama.cpp " + std::string(llama_cpp_version());
    for (const Device& device : list_devices()) key += ", " + device.description;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(header.weight_bytes), std::int64_t{header.n_vocab},
          std::int64_t{header.head_size}, std::int64_t{model.n_gpu_layers.value_or(-1)},
          std::int64_t{context.n_threads}, std::int64_t{context.never_alone},
          static_cast<std::int64_t>(context.flash_attn)})
        key += ", " + std::to_string(number);
    return key + ", " + model.device + ", " + context.kv_type.value_or("f16") + ", " + kernels;
}

// What the bytes of a KV memory of so many parts depend on besides the numbers in the weights, on
// one line.
std::string state_key(const Header& header, const ContextOptions& context, int n_parts,
                      bool exact) {
    const auto number = [](auto value) { return std::to_string(static_cast<std::int64_t>(value)); };
    return "llama.cpp " + std::string(llama_cpp_version()) + ", weights of " +
           number(header.weight_bytes) + " bytes, " + number(header.n_vocab) +
           " tokens, heads of " + number(header.head_size) + ", memory in " + number(n_parts) +
           " parts of type " + context.kv_type.value_or("f16") + ", flash attention " +
           number(context.flash_attn) + (exact ? ", exact" : ", not exact");
}

}  // namespace

SessionState::SessionState(SessionOptions options, std::shared_ptr<Drafter> drafter)
    : gate_(options.context.n_seq > 1 ? Gate::Policy::queue : Gate::Policy::refuse) {
    const int spec_length = options.spec_length.value_or(kMaxSpecLength);
    if (spec_length < 1 || spec_length > kMaxSpecLength)
        throw InvalidArgument("spec_length must be from 1 to " + std::to_string(kMaxSpecLength) +
                              ", not " + std::to_string(spec_length) + ".");
    specllama::check(options.context);
    const Header header = check_gguf(options.model.path);
    std::optional<Header> draft_header;
    if (options.draft_model) draft_header = check_gguf(options.draft_model->model.path);
    exact_ = settle_exactness(header, options);
    if (options.draft_model) {
        options.draft_model->context.n_seq = options.context.n_seq;
        options.draft_model->context.n_batch = options.context.n_batch;
    }
    settle_memory(header, draft_header ? &*draft_header : nullptr, options);

    model_ = Model::load(options.model, header, options.load_progress);
    std::vector<std::shared_ptr<Drafter>> drafters;
    const bool is_alone = options.draft_model && options.spec_length;
    if (drafter) drafters.push_back(std::move(drafter));
    if (!options.corpus.empty() && !is_alone)
        drafters.push_back(
            std::make_shared<CorpusDrafter>(options.corpus, model_->vocab().text_fingerprint()));
    std::shared_ptr<ModelDrafter> draft_model;
    if (options.draft_model) {
        options.draft_model->context.n_ctx = options.context.n_ctx;
        draft_model = std::make_shared<ModelDrafter>(*model_, *options.draft_model, *draft_header,
                                                     spec_length, options.load_progress);
        drafters.push_back(draft_model);
    }
    // With a drafter, memories that keep snapshots of their state take another kernel (the gated
    // delta net of Qwen3.5): where both must agree there is one snapshot without a drafter, too.
    const int n_logits = drafters.empty() ? 1 + exact_ : spec_length + 1;
    context_ = std::make_unique<Context>(model_, options.context, n_logits);
    engine_ = std::make_unique<Engine>(
        *context_, Speculator(std::move(drafters), options.spec_length, model_->vocab(),
                              context_->memory().split()));
    if (options.context.never_alone && context_->memory().n_cuttable() == 0)
        throw InvalidArgument("exact cannot be had for " + options.model.path +
                              ": it has float weights, and a memory that cannot be cut back.");
    Speculator& speculator = engine_->speculator();
    CostCurve& cost = speculator.planner().cost();
    CostCurve& draft_cost = speculator.draft_cost();
    if (speculator.plans())
        curves_.emplace_back(curve_key(header, options.model, options.context, model_->kernels()),
                             &cost);
    if (draft_model)
        curves_.emplace_back(
            curve_key(*draft_header, options.draft_model->model, options.draft_model->context,
                      draft_model->context().model().kernels()),
            &draft_cost);
    for (const auto& [key, curve] : curves_)
        if (const auto points = load_curve(key)) curve->restore(*points);
    if (speculator.plans() && !cost.measured()) calibrate(*context_, n_logits, cost);
    if (draft_model) {
        if (!draft_cost.measured()) calibrate(draft_model->context(), spec_length, draft_cost);
        speculator.planner().draft_cost().restore(draft_cost.points());
    }
    const int n_parts = context_->memory().split() ? context_->n_seq() : 1;
    state_key_ = state_key(header, options.context, n_parts, exact_);
    slots_ = std::make_unique<SlotPool>(context_->memory(), context_->n_seq());
    n_ctx_ = context_->n_ctx();
    n_seq_ = context_->n_seq();
    n_free_ = n_seq_;
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
    for (const auto& sequence : active_) leave(*sequence);
    active_.clear();
    keep_curves();
    slots_.reset();
    engine_.reset();
    context_.reset();
    const std::lock_guard lock(model_mutex_);
    model_.reset();
}

void SessionState::leave(Sequence& sequence) {
    slots_->take_out(sequence);
    n_free_ = slots_->n_free();
    engine_->end(sequence);
}

void SessionState::retire() {
    for (std::size_t i = 0; i < active_.size();) {
        const std::shared_ptr<Sequence> sequence = active_[i];
        if (sequence->abandoned() && !sequence->done()) sequence->finish(FinishReason::none);
        if (!sequence->done()) {
            ++i;
            continue;
        }
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
        leave(*sequence);
    }
}

void SessionState::check(TokenSpan prompt, const GenerateOptions& options) const {
    const std::shared_ptr<const Model> model = this->model();
    check_prompt(prompt, model->vocab(), n_ctx());
    check_tokens(options.reference, model->vocab(), "reference");
    check_tokens(options.replayed, model->vocab(), "replayed text");
    check_options(options, n_ctx() - static_cast<int>(prompt.size()));
}

std::shared_ptr<Sequence> SessionState::start(TokenSpan prompt, const GenerateOptions& options) {
    check(prompt, options);
    const std::shared_ptr<const Model> model = this->model();
    auto sequence = std::make_shared<Sequence>(model->vocab(), prompt, options, n_ctx());
    sequence->stats.exact = exact_;
    const Gate::Work work(gate_, [&] {
        if (n_seq_ == 1 && !active_.empty() && owner_ != std::this_thread::get_id())
            throw Busy(
                "The session has an unfinished generation in another thread; use one session "
                "per thread, or finish or cancel that generation.");
    });
    if (closed_) throw_closed();
    retire();
    if (n_seq_ == 1 && !active_.empty()) leave(*std::exchange(active_, {}).front());
    if (sequence->n_tokens_left() == 0)
        sequence->finish(FinishReason::length);
    else
        enter(sequence, options.reference);
    return sequence;
}

void SessionState::throw_taken() const {
    throw Busy("All " + std::to_string(n_seq_) +
               " sequences of the session are in use; wait until one is free, or raise n_seq.");
}

void SessionState::enter(const std::shared_ptr<Sequence>& sequence, TokenSpan reference) {
    if (slots_->n_free() == 0) throw_taken();
    const Timer timer(sequence->stats.seconds.total);
    {
        const Timer prefill_timer(sequence->stats.seconds.prefill);
        slots_->put(*sequence);
    }
    try {
        engine_->begin(*sequence, reference);
    } catch (...) {
        slots_->take_out(*sequence);
        throw;
    }
    active_.push_back(sequence);
    owner_ = std::this_thread::get_id();
    n_free_ = slots_->n_free();
}

void SessionState::advance() {
    stepping_.clear();
    for (const auto& sequence : active_) stepping_.push_back(sequence.get());
    {
        const SharedTimer timer(stepping_);
        engine_->step(stepping_);
    }
    retire();
}

bool SessionState::step() {
    const Gate::Work work(gate_);
    if (closed_) throw_closed();
    retire();
    if (active_.empty()) return false;
    advance();
    return true;
}

bool SessionState::step(Sequence& sequence, std::vector<Chunk>& chunks) {
    chunks.clear();
    if (sequence.all_taken()) return false;
    const Gate::Work work(gate_);
    take_ready(sequence, chunks);
    if (chunks.empty() && !sequence.done()) {
        advance();
        take_ready(sequence, chunks);
    }
    return true;
}

bool SessionState::take(Sequence& sequence, std::vector<Chunk>& chunks) {
    chunks.clear();
    if (sequence.all_taken()) return false;
    const Gate::Work work(gate_);
    take_ready(sequence, chunks);
    return true;
}

void SessionState::take_ready(Sequence& sequence, std::vector<Chunk>& chunks) {
    if (!closed_) retire();
    if (!sequence.done()) {
        if (closed_) throw_closed();
        if (std::ranges::none_of(active_, [&](const auto& one) { return one.get() == &sequence; }))
            throw Closed("This stream was ended when the session began another generation.");
    }
    Seconds& seconds = sequence.stats.seconds;
    const Timer total_timer(seconds.total);
    const Timer text_timer(seconds.text);
    sequence.take_chunks(chunks);
}

// Waits for nobody: what is abandoned while another thread works ends when that is done.
void SessionState::cancel(Sequence& sequence) {
    sequence.abandon();
    const Gate::Work work(gate_, std::try_to_lock);
    if (work.entered() && !closed_) retire();
}

SavedState SessionState::save() {
    const Gate::Work work(gate_);
    if (closed_) throw_closed();
    retire();
    SlotPool::Left left = slots_->left();
    if (left.tokens.empty() || left.state.empty())
        throw InvalidArgument("There is no state to save; generate something first.");
    return {state_key_, std::move(left.tokens), std::move(left.state)};
}

void SessionState::load(const SavedState& saved) {
    if (saved.key != state_key_)
        throw InvalidArgument("The state was saved by a session of another kind (" + saved.key +
                              "), not of this one (" + state_key_ + ").");
    check_prompt(saved.tokens, model()->vocab(), n_ctx() + 1);
    const Gate::Work work(gate_);
    if (closed_) throw_closed();
    retire();
    if (slots_->n_free() == 0) throw_taken();
    if (!slots_->load(saved.tokens, saved.memory))
        throw InvalidArgument("The state is damaged: it does not fit the memory of this session.");
}

}  // namespace specllama
