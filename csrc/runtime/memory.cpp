#include "runtime/memory.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "llama.h"
#include "system/host.h"

namespace specllama {

namespace {

// Saves only the parts that cannot be cut: recurrent states and sliding windows.
constexpr llama_state_seq_flags kUncuttable = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;

// A checkpoint may take at most this fraction (1 / n) of free main memory. Those of windows are
// large.
constexpr std::size_t kShareOfCheckpoint = 32;

int count_cuttable(const llama_context* context) {
    const llama_model* model = llama_get_model(context);
    const bool has_states = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
    return has_states ? static_cast<int>(llama_n_rs_seq(context)) : Memory::kAnyNumber;
}

bool has_jumps(llama_rope_type type) {
    return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE;
}

// The longest saved state with at most `keep` positions; null: none.
const Checkpoint* latest_of(const Checkpoints& checkpoints, int keep) {
    const auto after = std::ranges::upper_bound(checkpoints, keep, {}, &Checkpoint::size);
    return after == checkpoints.begin() ? nullptr : &*(after - 1);
}

// Number of its first `keep` positions that a text of n can keep. can_be_cut: it can be cut to
// exactly these. n_saved: size of its saved state otherwise.
int remaining(int n, int keep, bool can_be_cut, int n_saved) {
    if (n <= keep) return n;
    return can_be_cut ? keep : n_saved;
}

}  // namespace

Memory::Memory(llama_context* context, const Layout& layout)
    : context_(context),
      memory_(llama_get_memory(context)),
      n_branches_(layout.n_branches),
      per_sequence_streams_(layout.per_sequence_streams),
      whole_window_(layout.whole_window),
      has_sliding_window_(layout.has_sliding_window),
      n_swa_(llama_model_n_swa(llama_get_model(context))),
      n_cuttable_(count_cuttable(context)),
      decoded_from_(llama_n_seq_max(context)),
      jumps_(has_jumps(llama_model_rope_type(llama_get_model(context)))),
      ends_(decoded_from_.size()),
      limits_(layout.checkpoints),
      checkpoints_(llama_n_seq_max(context)),
      rounds_(checkpoints_.size()) {
    SequenceId branch = layout.n_seq;
    for (SequenceId sequence = 0; sequence < layout.n_seq; ++sequence) {
        ids_.push_back(sequence);
        for (int i = 0; i < n_branches_; ++i) ids_.push_back(branch++);
    }
}

std::span<SequenceId> Memory::ids(SequenceId sequence) {
    const std::size_t n = 1 + n_branches_;
    return std::span(ids_).subspan(sequence * n, n);
}

// While a sequence only grows, its branches hold prefixes of its content. So only new positions are
// copied, which only adds an id to their cells.
void Memory::branch(SequenceId sequence, int n_branches) {
    for (const SequenceId id : ids(sequence).subspan(1, n_branches))
        llama_memory_seq_cp(memory_, sequence, id, size(id), -1);
}

void Memory::cut_branches(SequenceId sequence, int keep) {
    for (const SequenceId id : ids(sequence).subspan(1))
        if (size(id) > keep) llama_memory_seq_rm(memory_, id, keep, -1);
}

// A decode may move the states of sequences that are not in it, but it loses their snapshots.
void Memory::expect_decode() {
    awaits_copy_.reset();
    if (n_cuttable_ != kAnyNumber) std::ranges::fill(decoded_from_, kAnyNumber);
}

int Memory::highest(SequenceId sequence) const {
    return llama_memory_seq_pos_max(memory_, sequence) + 1;
}

int Memory::size(SequenceId sequence) const {
    const int now = highest(sequence);
    const End& end = ends_[sequence];
    return now == end.highest ? end.size : now;
}

void Memory::extend(SequenceId sequence, int size) { ends_[sequence] = {highest(sequence), size}; }

void Memory::invalidate() {
    if (n_cuttable_ == kAnyNumber) return;
    for (SequenceId sequence = 0; sequence < std::ssize(checkpoints_); ++sequence) {
        const StateView saved = latest(sequence, kAnyNumber);
        if (saved.size == 0 || !restore(sequence, saved)) empty(sequence);
    }
}

void Memory::clear() {
    llama_memory_clear(memory_, true);
    awaits_copy_.reset();
    std::ranges::fill(ends_, End{});
    std::ranges::fill(checkpoints_, Checkpoints{});
    for (RoundState& round : rounds_) round.size = 0;
}

bool Memory::has_checkpoint(SequenceId sequence, int size) const {
    const Checkpoint* saved = latest_of(checkpoints_[sequence], size);
    return saved != nullptr && saved->size == size;
}

void Memory::save_checkpoint(SequenceId sequence) {
    if (most_checkpoints() == 0 || copies_windows()) return;
    const int now = size(sequence);
    if (now == 0 || has_checkpoint(sequence, now)) return;
    try {
        const std::size_t n = llama_state_seq_get_size_ext(context_, sequence, kUncuttable);
        if (!make_room(sequence, now, n)) return;
        auto state = std::make_shared<std::vector<std::uint8_t>>();
        if (save(sequence, *state) > 0) checkpoints_[sequence].push_back({now, std::move(state)});
    } catch (const std::bad_alloc&) {
        // Later requests decode more of their prompts.
    }
}

// Makes room in the limits and in the main memory.
bool Memory::make_room(SequenceId sequence, int size, std::size_t n_bytes) {
    if (!specllama::make_room(checkpoints_, sequence, size, n_bytes, limits_)) return false;
    return kShareOfCheckpoint * n_bytes <= memory_available();
}

void Memory::save_round(SequenceId sequence) {
    if (!needs_checkpoints() || copies_windows()) return;
    RoundState& round = rounds_[sequence];
    const int now = size(sequence);
    if (round.size == now || has_checkpoint(sequence, now)) return;
    round.size = 0;
    round.size = save(sequence, round.state);
}

// Returns the number of saved positions; 0: nothing was saved.
int Memory::save(SequenceId sequence, std::vector<std::uint8_t>& state) {
    state.resize(llama_state_seq_get_size_ext(context_, sequence, kUncuttable));
    const bool done = llama_state_seq_get_data_ext(context_, state.data(), state.size(), sequence,
                                                   kUncuttable) != 0;
    return done ? size(sequence) : 0;
}

bool Memory::restore(SequenceId sequence, const StateView& saved) {
    decoded_from_[sequence] = saved.size;  // it has no snapshots
    // The state must come first: only then does the recurrent part hold nothing beyond the cut.
    if (llama_state_seq_set_data_ext(context_, saved.state.data(), saved.state.size(), sequence,
                                     kUncuttable) == 0 ||
        !llama_memory_seq_rm(memory_, sequence, saved.size, -1))
        return false;
    extend(sequence, saved.size);
    return true;
}

bool Memory::in_reach(SequenceId sequence, int keep) const {
    // A sliding window frees older cells. Cutting too far back would still succeed, and the next
    // decode would attend without the missing cells.
    if (n_cuttable_ == kAnyNumber)
        return n_swa_ == 0 ||
               llama_memory_seq_pos_min(memory_, sequence) <= std::max(0, keep - n_swa_);
    // The snapshots are the states after the last tokens of the last decode. There is none before
    // its first token: llama.cpp would use leftovers of an earlier decode.
    return keep > decoded_from_[sequence] && size(sequence) - keep <= n_cuttable_;
}

void Memory::empty(SequenceId sequence) {
    cut_branches(sequence, 0);
    llama_memory_seq_rm(memory_, sequence, -1, -1);
    ends_[sequence] = {};
    checkpoints_[sequence].clear();
    rounds_[sequence].size = 0;
}

int Memory::cut(SequenceId sequence, int keep) {
    if (keep > 0 && in_reach(sequence, keep) && llama_memory_seq_rm(memory_, sequence, keep, -1)) {
        if (n_cuttable_ != kAnyNumber) decoded_from_[sequence] = keep;  // snapshots serve once
        extend(sequence, keep);
        return keep;
    }
    const StateView saved = latest(sequence, keep);
    return saved.size > 0 && restore(sequence, saved) ? saved.size : 0;
}

// The longest saved state of at most `keep` positions. While windows await their copy there is
// none: a restored state would be copied instead of the content, or overwritten.
Memory::StateView Memory::latest(SequenceId sequence, int keep) const {
    if (copies_windows()) return {};
    const RoundState& round = rounds_[sequence];
    const Checkpoint* saved = latest_of(checkpoints_[sequence], keep);
    const int n_saved = saved == nullptr ? 0 : saved->size;
    if (round.size <= keep && round.size > n_saved) return {round.size, round.state};
    return saved == nullptr ? StateView{} : StateView{n_saved, *saved->state};
}

int Memory::rewind(SequenceId sequence, int keep) {
    // The last decode may have added other tokens to a branch than to the sequence.
    cut_branches(sequence, std::min(keep, decoded_from_[sequence]));
    const int now = size(sequence);
    if (now <= keep) return now;
    const int left = cut(sequence, keep);
    if (left == 0) empty(sequence);
    // States saved beyond the cut belong to a text that the sequence no longer holds.
    if (rounds_[sequence].size > left) rounds_[sequence].size = 0;
    std::erase_if(checkpoints_[sequence], [&](const Checkpoint& one) { return one.size > left; });
    return left;
}

int Memory::rewindable(SequenceId sequence, int keep) const {
    return remaining(size(sequence), keep, keep > 0 && in_reach(sequence, keep),
                     latest(sequence, keep).size);
}

// A restored state places the cells of a sliding window at other places than in the sequence from
// which it was saved. llama.cpp copies between parts of the memory only with the next decode, and
// the copy would then overwrite the restored cells.
int Memory::copyable_prefix(SequenceId from, int keep) const {
    if (n_cuttable_ == kAnyNumber)
        return remaining(size(from), keep, keep > 0 && in_reach(from, keep), 0);
    return per_sequence_streams_ && has_sliding_window()
               ? 0
               : remaining(size(from), keep, false, latest(from, keep).size);
}

int Memory::copy_prefix(SequenceId from, SequenceId to, int keep) {
    empty(to);
    const int n = copyable_prefix(from, keep);
    if (n == 0) return 0;
    if (per_sequence_streams_) awaits_copy_ = to;
    if (n_cuttable_ == kAnyNumber) {
        // Between parts of the memory llama.cpp can only copy everything; copying less fails an
        // assertion, which ends the process.
        llama_memory_seq_cp(memory_, from, to, -1, per_sequence_streams_ ? -1 : n);
        llama_memory_seq_rm(memory_, to, n, -1);
        extend(to, n);
        return n;
    }
    auto state = std::make_shared<std::vector<std::uint8_t>>();
    if (size(from) == n) {
        if (save(from, *state) != n) return 0;
    } else {
        const StateView saved = latest(from, n);
        state->assign(saved.state.begin(), saved.state.end());
    }
    const StateView saved{n, *state};
    // This copies the attention part and makes both sequences share the recurrent state; restore()
    // then gives `to` its own state.
    llama_memory_seq_cp(memory_, from, to, -1, -1);
    if (!restore(to, saved)) {
        empty(to);
        return 0;
    }
    if (make_room(to, n, state->size())) checkpoints_[to].push_back({n, std::move(state)});
    return n;
}

void Memory::share(SequenceId from, SequenceId to, Position begin, Position end) {
    if (begin < end) llama_memory_seq_cp(memory_, from, to, begin, end);
}

void Memory::drop(SequenceId sequence, Position begin) {
    llama_memory_seq_rm(memory_, sequence, begin, -1);
}

// Decodes a token after the sequence's content and removes it again; `then` is called in between.
template <typename Then>
void Memory::decode_one(SequenceId sequence, const Then& then) {
    expect_decode();
    const bool has_states = n_cuttable_ != kAnyNumber;
    std::vector<std::uint8_t> before;
    const int n_before = has_states ? save(sequence, before) : 0;
    Token token = 0;
    Position position = size(sequence);
    int n_ids = 1;
    SequenceId* ids = &sequence;
    std::int8_t wants_logits = 0;
    const auto remove = [&] {
        if (!has_states)
            llama_memory_seq_rm(memory_, sequence, position, -1);
        else if (n_before == 0 || !restore(sequence, StateView{n_before, before}))
            empty(sequence);
    };
    try {
        llama_decode(context_, {.n_tokens = 1,
                                .token = &token,
                                .embd = nullptr,
                                .pos = &position,
                                .n_seq_id = &n_ids,
                                .seq_id = &ids,
                                .logits = &wants_logits});
        then();
    } catch (...) {  // out of memory
        remove();
        throw;
    }
    remove();
}

// llama.cpp copies between parts of the memory only with the next decode, but saves and loads
// states at once: it would save the content before the copy, or later overwrite loaded content. So
// a token is decoded now and removed again.
void Memory::finish_copy() {
    if (!awaits_copy_) return;
    const SequenceId sequence = *awaits_copy_;
    try {
        decode_one(sequence, [] {});
    } catch (...) {
        awaits_copy_ = sequence;
        throw;
    }
}

std::vector<std::uint8_t> Memory::state(SequenceId sequence) {
    finish_copy();
    std::vector<std::uint8_t> state(llama_state_seq_get_size(context_, sequence));
    state.resize(llama_state_seq_get_data(context_, state.data(), state.size(), sequence));
    return state;
}

bool Memory::read(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens) {
    finish_copy();
    empty(sequence);
    if (llama_state_seq_set_data(context_, state.data(), state.size(), sequence) == state.size() &&
        (highest(sequence) == n_tokens || (jumps_ && highest(sequence) < n_tokens))) {
        extend(sequence, n_tokens);
        decoded_from_[sequence] = n_tokens;  // it has no snapshots
        return true;
    }
    empty(sequence);
    return false;
}

bool Memory::load(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens) {
    if (!read(sequence, state, n_tokens)) return false;
    save_checkpoint(sequence);
    return true;
}

bool Memory::fits(SequenceId sequence, TokenSpan held, std::span<const std::uint8_t> state,
                  TokenSpan tokens) {
    if (!layout_ && !held.empty()) layout_ = StateLayout::of(this->state(sequence), held);
    if (!layout_ && held.empty()) {
        finish_copy();
        const Token token = 0;
        decode_one(sequence,
                   [&] { layout_ = StateLayout::of(this->state(sequence), {&token, 1}); });
    }
    return layout_ && layout_->fits(state, tokens);
}

int Memory::Backup::rewindable(int keep) const {
    const Checkpoint* saved = latest_of(checkpoints, keep);
    return remaining(size, keep, keep >= least, saved == nullptr ? 0 : saved->size);
}

std::size_t Memory::n_bytes(SequenceId sequence) const {
    const std::size_t n = llama_state_seq_get_size(context_, sequence);
    return n + specllama::n_bytes(thinned(checkpoints_[sequence], n));
}

// llama.cpp's states have no snapshots, and contain only the part of a sliding window that the next
// token attends to: with either, no token can be cut off.
Memory::Backup Memory::back_up(SequenceId sequence) {
    const int now = size(sequence);
    const bool is_whole = n_cuttable_ == kAnyNumber && (n_swa_ == 0 || now <= n_swa_);
    Backup backup = {
        .size = now, .least = is_whole ? 1 : now, .state = state(sequence), .checkpoints = {}};
    backup.checkpoints = thinned(checkpoints_[sequence], backup.state.size());
    return backup;
}

bool Memory::restore(SequenceId sequence, const Backup& backup) {
    if (!read(sequence, backup.state, backup.size)) return false;
    checkpoints_[sequence] = backup.checkpoints;
    return true;
}

}  // namespace specllama
