#include "session/scheduler.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "beam/beam_search.h"
#include "llama/backend.h"
#include "runtime/helper_threads.h"
#include "session/request_check.h"
#include "session/shared_timer.h"
#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

[[noreturn]] void throw_closed() { throw Closed("The session is closed; open a new one."); }

}  // namespace

Scheduler::Scheduler(SessionParts parts)
    : model_(std::move(parts.model)),
      vocabulary_(std::move(parts.vocabulary)),
      vision_(std::move(parts.vision)),
      context_(std::move(parts.context)),
      engine_(std::move(parts.engine)),
      conversion_(std::move(parts.conversion)),
      curve_keys_(std::move(parts.curve_keys)),
      calibration_(std::move(parts.calibration)),
      history_(std::move(parts.history)),
      history_file_(std::move(parts.history_file)),
      slots_(std::make_unique<SlotPool>(context_ ? &context_->memory() : nullptr, parts.info.n_seq,
                                        parts.cache_bytes)),
      context_plan_(std::move(parts.context_plan)),
      info_(std::move(parts.info)),
      exact_(parts.exact),
      same_widths_(parts.same_widths),
      state_key_(std::move(parts.state_key)),
      n_free_(info_.n_seq) {
    release_helper_threads();  // threads of measurements
}

std::shared_ptr<const Vocabulary> Scheduler::vocabulary() const {
    const std::lock_guard lock(model_mutex_);
    if (!vocabulary_) throw_closed();
    return vocabulary_;
}

// Null if the target is remote.
std::shared_ptr<const Model> Scheduler::model() const {
    const std::lock_guard lock(model_mutex_);
    return model_;
}

MediaPrompt Scheduler::media_prompt(std::span<const PromptPart> parts) const {
    if (!open().model()) refuse_remote("An image or a sound");
    std::unique_lock lock(model_mutex_);
    const std::shared_ptr<const Vision> vision = vision_;
    lock.unlock();
    if (!vision)
        throw InvalidArgument(
            "The session reads text only; open it with the model's projector (mmproj), if it has "
            "one.");
    return vision->prompt(parts, info().n_ctx, context_plan_.n_batch);
}

int Scheduler::n_encoded() const {
    const std::lock_guard lock(model_mutex_);
    return vision_ ? vision_->n_encoded() : 0;
}

// A remote target has the masks of its texts.
std::unique_ptr<Mask> Scheduler::make_mask(const SamplingOptions& options) const {
    const std::shared_ptr<const Model> model = this->model();
    return model ? constraints_.make(model->vocab(), options) : nullptr;
}

const Scheduler& Scheduler::open() const {
    if (closed_) throw_closed();
    return *this;
}

void Scheduler::check_open() const {
    if (!engine_) throw_closed();
}

Scheduler::~Scheduler() {
    if (engine_ && process_ == getpid()) shutdown();
}

void Scheduler::close() {
    lock_.check_not_held();  // before anything changes
    closed_ = true;          // ends a search before its next round
    const std::scoped_lock lock(lock_);
    if (!engine_) return;
    shutdown();
    // A drafter may throw an interrupt when its sequence ends. Everything is still freed.
    std::exception_ptr interrupt;
    for (const auto& sequence : active_) {
        try {
            remove(*sequence);
        } catch (...) {
            interrupt = std::current_exception();
        }
    }
    active_.clear();
    slots_.reset();
    calibration_ = {};
    engine_.reset();
    conversion_.reset();
    context_.reset();
    {
        const std::lock_guard model_lock(model_mutex_);
        model_.reset();
        vocabulary_.reset();
        vision_.reset();
    }
    if (interrupt) std::rethrow_exception(interrupt);
}

void Scheduler::shutdown() {
    release_helper_threads();
    Speculator& speculator = engine_->speculator();
    store_curves(curve_keys_, speculator.curves());
    if (curve_keys_.size() > 1)
        store_draft_record(curve_keys_, speculator.planner()->draft_record());
    for (const auto& sequence : active_) remember(*sequence);
    store_history();
    history_.reset();
}

void Scheduler::remember(const Sequence& sequence) {
    if (history_ && sequence.memory_owner() >= 0 && !sequence.spoiled)
        history_->append(sequence.memory_owner(), sequence.text_tokens());
}

// Losing these texts only makes later requests slower.
void Scheduler::store_history() const try {
    if (history_file_ && history_ && history_->n_tokens() > 0) history_file_->write(*history_);
} catch (const std::exception& error) {
    warn("memory_file " + history_file_->path() + " could not be written: " + error.what() + ".");
}

void Scheduler::remove(Sequence& sequence) {
    slots_->take_out(sequence);
    n_free_ = slots_->n_free();
    remember(sequence);
    engine_->end(sequence);
}

void Scheduler::reap_finished() {
    if (active_.empty()) return;
    for (std::size_t i = 0; i < active_.size();) {
        const std::shared_ptr<Sequence> sequence = active_[i];
        if (sequence->abandoned() && !sequence->done()) sequence->finish(FinishReason::none);
        if (!sequence->done()) {
            ++i;
            continue;
        }
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
        remove(*sequence);
    }
    if (active_.empty()) rest_helper_threads();
}

void Scheduler::check(TokenSpan prompt, const MediaChunks& media,
                      const GenerateOptions& options) const {
    check_request(prompt, media, options, *vocabulary(), info().n_ctx);
    check_slot(options.id_slot);
    if (options.spec_type == SpecType::model && !info().drafts_by_model)
        throw InvalidArgument(
            "spec_type is \"model\", but the session has no draft model; leave it out.");
    if (options.spec_type == SpecType::ngram && !info().drafts_by_ngram)
        throw InvalidArgument(
            "spec_type is \"ngram\", but the session has no drafter that copies; leave it out.");
    if (const std::shared_ptr<const Model> model = this->model())
        constraints_.check(model->vocab(), options.sampling);
    else
        check_remote(options);
}

std::shared_ptr<Sequence> Scheduler::start(TokenSpan prompt, const MediaChunks& media,
                                           const GenerateOptions& options) {
    check(prompt, media, options);
    const std::shared_ptr<const Vocabulary> vocabulary = this->vocabulary();
    auto sequence = std::make_shared<Sequence>(*vocabulary, prompt, options, info().n_ctx,
                                               make_mask(options.sampling), media);
    sequence->stats.exact = exact_;
    sequence->stats.same_widths = same_widths_;
    const std::scoped_lock lock(lock_);
    check_open();
    reap_finished();
    if (info_.n_seq == 1 && !active_.empty()) {
        if (owner_ != std::this_thread::get_id())
            throw Busy(
                "The session has an unfinished generation in another thread, and n_seq is 1. "
                "Finish or cancel that generation, open the session with a larger n_seq, or use "
                "submit (in Python), which queues requests.");
        remove(*std::exchange(active_, {}).front());
    }
    if (!sequence->done() && sequence->n_tokens_left() == 0) sequence->finish(FinishReason::length);
    if (!sequence->done()) add(sequence, options.reference);
    return sequence;
}

void Scheduler::check_slot(int slot) const {
    if (slot >= info_.n_seq)
        throw InvalidArgument("id_slot is " + std::to_string(slot) + ", but the slots are 0 to " +
                              std::to_string(info_.n_seq - 1) + ".");
}

// slot: the required one; -1: any.
void Scheduler::check_free(int slot) const {
    if (slot >= 0 && slots_->taken(slot))
        throw Busy("Slot " + std::to_string(slot) +
                   " is in use; wait until its request has ended, or use another slot.");
    if (slots_->n_free() == 0)
        throw Busy("All " + std::to_string(info_.n_seq) +
                   " sequences of the session are in use; wait until one is free, or raise n_seq.");
}

void Scheduler::add(const std::shared_ptr<Sequence>& sequence, TokenSpan reference) {
    check_free(sequence->wanted_slot());
    const Timer timer(sequence->stats.seconds.total);
    {
        const Timer prefill_timer(sequence->stats.seconds.prefill);
        slots_->put(*sequence);
    }
    try {
        active_.reserve(active_.size() + 1);  // so that push_back cannot fail
        engine_->begin(*sequence, reference);
    } catch (...) {
        slots_->take_out(*sequence);
        throw;
    }
    active_.push_back(sequence);
    owner_ = std::this_thread::get_id();
    n_free_ = slots_->n_free();
}

bool Scheduler::advance() {
    stepping_.clear();
    for (const auto& sequence : active_) stepping_.push_back(sequence.get());
    if (stepping_.empty()) return false;
    if (calibration_.due(stepping_)) calibration_.run();
    {
        const SharedTimer timer(stepping_);
        engine_->step(stepping_);
    }
    reap_finished();
    return true;
}

bool Scheduler::step() {
    const std::scoped_lock lock(lock_);
    check_open();
    reap_finished();
    return advance();
}

bool Scheduler::step(Sequence& sequence, std::vector<Chunk>& chunks) {
    chunks.clear();
    if (sequence.abandoned()) return take(sequence, chunks);
    if (sequence.all_taken()) return false;
    const std::scoped_lock lock(lock_);
    take_ready(sequence, chunks);
    if (chunks.empty() && !sequence.done()) {
        advance();
        take_ready(sequence, chunks);
    }
    return true;
}

bool Scheduler::take(Sequence& sequence, std::vector<Chunk>& chunks) {
    chunks.clear();
    if (sequence.all_taken()) return false;
    const std::scoped_lock lock(lock_);
    take_ready(sequence, chunks);
    return true;
}

void Scheduler::take_ready(Sequence& sequence, std::vector<Chunk>& chunks) {
    if (engine_) reap_finished();
    if (!sequence.done()) {
        check_open();
        if (std::ranges::none_of(active_, [&](const auto& one) { return one.get() == &sequence; }))
            throw Closed("This stream was ended when the session began another generation.");
    }
    Seconds& seconds = sequence.stats.seconds;
    const Timer total_timer(seconds.total);
    const Timer text_timer(seconds.text);
    sequence.take_chunks(chunks);
}

// Never waits for work: if another thread works, the abandoned sequence ends after that work.
void Scheduler::cancel(Sequence& sequence) {
    if (process_ != getpid()) return;
    sequence.abandon();
    const std::unique_lock lock(lock_, std::try_to_lock);
    if (lock && engine_) reap_finished();
}

std::vector<double> Scheduler::decode_seconds() {
    const bool in_round = lock_.held();
    return look([&] {
        const std::vector<CostCurve*> curves = open().engine_->speculator().curves();
        if (!in_round && calibration_.run()) release_helper_threads();
        return curves.empty() ? std::vector<double>(CostCurve::kMaxTokens)
                              : curves.front()->points().seconds;
    });
}

BeamResult Scheduler::beam_search(TokenSpan prompt, const BeamOptions& options,
                                  const BetweenRounds& between) {
    check_search(prompt, options, *vocabulary(), info().n_ctx);
    const std::scoped_lock lock(lock_);
    check_open();
    if (!context_) refuse_remote("beam_search");
    reap_finished();
    const Memory& memory = context_->memory();
    if (memory.n_cuttable() != Memory::kAnyNumber)
        throw InvalidArgument(
            "Beam search is not supported for recurrent and hybrid models: their state cannot be "
            "shared between beams.");
    if (calibration_.run()) rest_helper_threads();
    const Stopwatch watch;
    // The search has info_.n_seq as its id, which no request has.
    BeamSearch search(model_, context_plan_, engine_->speculator(), info_.n_seq, prompt, options);
    // The search reuses the memory left by other requests, and leaves its prompt for later ones.
    const bool fits = !memory.per_sequence_streams() && !memory.has_sliding_window();
    if (const SlotPool::Left left =
            fits && options.cache_prompt ? slots_->left() : SlotPool::Left();
        !left.state.empty() && std::ranges::none_of(left.tokens, is_media))
        search.reuse(left.tokens, left.state);
    while (!search.done()) {
        between();
        if (closed_) throw_closed();
        search.round();
    }
    rest_helper_threads();
    reap_finished();  // those cancelled meanwhile
    BeamResult result{search.beams(), search.stats()};
    try {
        if (fits && slots_->n_free() > 0) slots_->load(prompt, search.prompt_state());
    } catch (const std::bad_alloc&) {
        // The prompt is then not kept for later requests.
    }
    result.stats.seconds.total = watch.seconds();
    result.stats.exact = exact_;
    result.stats.same_widths = same_widths_;
    return result;
}

SavedState Scheduler::save(int slot) {
    check_slot(slot);
    const std::scoped_lock lock(lock_);
    check_open();
    if (!context_) refuse_remote("save_state");
    reap_finished();
    if (slot >= 0) check_free(slot);
    SlotPool::Left left = slot < 0 ? slots_->left() : slots_->left(slot);
    if (left.tokens.empty() || left.state.empty())
        throw InvalidArgument(slot < 0 ? "There is no state to save; generate something first."
                                       : "Slot " + std::to_string(slot) +
                                             " is empty, so there is nothing to save.");
    return {state_key_, std::move(left.tokens), std::move(left.state)};
}

void Scheduler::load(const SavedState& saved, int slot) {
    check_slot(slot);
    if (!open().model()) refuse_remote("load_state");
    if (saved.key != state_key_)
        throw InvalidArgument("The state was saved by another kind of session (" + saved.key +
                              "); this one is " + state_key_ + ".");
    check_saved(saved.tokens, *vocabulary(), info().n_ctx + 1);
    const std::scoped_lock lock(lock_);
    check_open();
    reap_finished();
    check_free(slot);
    if (calibration_.run()) rest_helper_threads();  // not after a long text
    if (!slots_->load(saved.tokens, saved.memory, slot))
        throw InvalidArgument("The state is damaged: it does not fit the memory of this session.");
}

int Scheduler::erase(int slot) {
    check_slot(slot);
    if (!open().model()) refuse_remote("Erasing a slot");
    const std::scoped_lock lock(lock_);
    check_open();
    reap_finished();
    check_free(slot);
    return slots_->erase(slot);
}

}  // namespace specllama
