#include "llama/memory.h"

#include <algorithm>

#include "llama.h"

namespace specllama {

namespace {

// Only what cannot be cut: of a hybrid model's memory the recurrent part.
constexpr llama_state_seq_flags kRecurrentPart = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;

int count_cuttable(const llama_context* context) {
    const llama_model* model = llama_get_model(context);
    const bool has_states = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
    return has_states ? static_cast<int>(llama_n_rs_seq(context)) : Memory::kAnyNumber;
}

}  // namespace

Memory::Memory(llama_context* context, const Layout& layout)
    : context_(context),
      memory_(llama_get_memory(context)),
      n_branches_(layout.n_branches),
      split_(layout.split),
      n_swa_(llama_model_n_swa(llama_get_model(context))),
      n_cuttable_(count_cuttable(context)),
      decoded_from_(llama_n_seq_max(context)),
      saved_(llama_n_seq_max(context)) {
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

// An id holds a beginning of what its sequence holds, for as long as the sequence goes on: so only
// what is new must be copied, which is no more than a mark on its cells.
void Memory::branch(SequenceId sequence, int n_branches) {
    for (const SequenceId id : ids(sequence).subspan(1, n_branches))
        llama_memory_seq_cp(memory_, sequence, id, size(id), -1);
}

void Memory::cut_branches(SequenceId sequence, int keep) {
    for (const SequenceId id : ids(sequence).subspan(1))
        if (size(id) > keep) llama_memory_seq_rm(memory_, id, keep, -1);
}

// A decode may move the states of sequences that are not in it, and leaves their snapshots behind.
void Memory::expect_decode() {
    awaits_copy_.reset();
    if (n_cuttable_ != kAnyNumber) std::ranges::fill(decoded_from_, kAnyNumber);
}

int Memory::size(SequenceId sequence) const {
    return llama_memory_seq_pos_max(memory_, sequence) + 1;
}

void Memory::distrust() {
    if (n_cuttable_ == kAnyNumber) return;
    for (SequenceId sequence = 0; sequence < std::ssize(saved_); ++sequence) {
        const Saved* saved = latest(sequence, kAnyNumber);
        if (saved == nullptr || !restore(sequence, *saved)) empty(sequence);
    }
}

void Memory::checkpoint(SequenceId sequence, Mark mark) {
    if (n_cuttable_ == kAnyNumber) return;
    const int now = size(sequence);
    const Saved* saved = latest(sequence, now);
    if (now == 0 || (saved != nullptr && saved->size == now)) return;
    save(sequence, saved_[sequence][static_cast<std::size_t>(mark)]);
}

const Memory::Saved* Memory::latest(SequenceId sequence, int keep) const {
    const Saved* best = nullptr;
    for (const Saved& saved : saved_[sequence])
        if (saved.size > 0 && saved.size <= keep && (best == nullptr || saved.size > best->size))
            best = &saved;
    return best;
}

void Memory::save(SequenceId sequence, Saved& saved) {
    saved.state.resize(llama_state_seq_get_size_ext(context_, sequence, kRecurrentPart));
    const bool done = llama_state_seq_get_data_ext(context_, saved.state.data(), saved.state.size(),
                                                   sequence, kRecurrentPart) != 0;
    saved.size = done ? size(sequence) : 0;
}

bool Memory::restore(SequenceId sequence, const Saved& saved) {
    decoded_from_[sequence] = saved.size;  // no snapshots come with it
    // The state first: only then does nothing of the recurrent part lie behind the cut.
    return llama_state_seq_set_data_ext(context_, saved.state.data(), saved.state.size(), sequence,
                                        kRecurrentPart) != 0 &&
           llama_memory_seq_rm(memory_, sequence, saved.size, -1);
}

bool Memory::in_reach(SequenceId sequence, int keep) const {
    // A sliding window lets older cells go. Cutting would succeed all the same, and the next
    // decode would attend to cells that are not there.
    if (n_cuttable_ == kAnyNumber)
        return n_swa_ == 0 ||
               llama_memory_seq_pos_min(memory_, sequence) <= std::max(0, keep - n_swa_);
    // The snapshots are those after the last tokens of the last decode; there is none before its
    // first token, and llama.cpp would take up what an earlier decode has left there.
    return keep > decoded_from_[sequence] && size(sequence) - keep <= n_cuttable_;
}

void Memory::empty(SequenceId sequence) {
    cut_branches(sequence, 0);
    llama_memory_seq_rm(memory_, sequence, -1, -1);
    for (Saved& saved : saved_[sequence]) saved.size = 0;
}

int Memory::cut(SequenceId sequence, int keep) {
    if (keep > 0 && in_reach(sequence, keep) && llama_memory_seq_rm(memory_, sequence, keep, -1)) {
        if (n_cuttable_ != kAnyNumber) decoded_from_[sequence] = keep;  // a snapshot serves once
        return keep;
    }
    const Saved* saved = latest(sequence, keep);
    return saved != nullptr && restore(sequence, *saved) ? saved->size : 0;
}

int Memory::rewind(SequenceId sequence, int keep) {
    // What the last decode added to a branch may be another token than the sequence's.
    cut_branches(sequence, std::min(keep, decoded_from_[sequence]));
    const int now = size(sequence);
    if (now <= keep) return now;
    const int left = cut(sequence, keep);
    if (left == 0) empty(sequence);
    // What was saved of the text behind the cut is of another text from now on.
    for (Saved& saved : saved_[sequence])
        if (saved.size > left) saved.size = 0;
    return left;
}

int Memory::rewindable(SequenceId sequence, int keep) const {
    return keep > 0 && in_reach(sequence, keep) ? std::min(keep, size(sequence))
                                                : held(sequence, keep);
}

// Of a state that is restored a window lies elsewhere than in the sequence that it was saved of;
// and the copy, which llama.cpp makes no sooner than with the next decode, would come over that.
int Memory::copyable(SequenceId from, int keep) const {
    const bool disagrees = split_ && slides() && n_cuttable_ != kAnyNumber;
    return disagrees ? 0 : held(from, keep);
}

int Memory::held(SequenceId sequence, int keep) const {
    const int now = size(sequence);
    if (now <= keep) return now;
    if (n_cuttable_ == kAnyNumber) return keep > 0 && in_reach(sequence, keep) ? keep : 0;
    const Saved* saved = latest(sequence, keep);
    return saved == nullptr ? 0 : saved->size;
}

int Memory::copy(SequenceId from, SequenceId to, int keep) {
    empty(to);
    const int n = copyable(from, keep);
    if (n == 0) return 0;
    if (split_) awaits_copy_ = to;
    if (n_cuttable_ == kAnyNumber) {
        // From one part of the memory to another llama.cpp copies all or, with an assertion, dies.
        llama_memory_seq_cp(memory_, from, to, -1, split_ ? -1 : n);
        llama_memory_seq_rm(memory_, to, n, -1);
        return n;
    }
    Saved& saved = saved_[to][static_cast<std::size_t>(Mark::prompt)];
    if (size(from) == n)
        save(from, saved);
    else
        saved = Saved(*latest(from, n));  // whole, or as it was
    // The attention's part; the states, which are shared by this, then become the sequence's own.
    llama_memory_seq_cp(memory_, from, to, -1, -1);
    if (saved.size == n && restore(to, saved)) return n;
    empty(to);
    return 0;
}

void Memory::share(SequenceId from, SequenceId to, Position begin, Position end) {
    if (begin < end) llama_memory_seq_cp(memory_, from, to, begin, end);
}

void Memory::drop(SequenceId sequence, Position begin) {
    llama_memory_seq_rm(memory_, sequence, begin, -1);
}

// From one part of the memory to another llama.cpp copies no sooner than with the next decode; but
// at once it reads and writes what is saved and loaded, which would be what lay there before. So a
// token is decoded, of which nothing stays.
void Memory::finish_copy() {
    if (!awaits_copy_) return;
    SequenceId sequence = *awaits_copy_;
    expect_decode();
    const bool has_states = n_cuttable_ != kAnyNumber;
    Saved before;
    if (has_states) save(sequence, before);
    Token token = 0;
    Position position = size(sequence);
    int n_ids = 1;
    SequenceId* ids = &sequence;
    std::int8_t wants_logits = 0;
    llama_decode(context_, {.n_tokens = 1,
                            .token = &token,
                            .embd = nullptr,
                            .pos = &position,
                            .n_seq_id = &n_ids,
                            .seq_id = &ids,
                            .logits = &wants_logits});
    if (!has_states)
        llama_memory_seq_rm(memory_, sequence, position, -1);
    else if (before.size == 0 || !restore(sequence, before))
        empty(sequence);
}

std::vector<std::uint8_t> Memory::state(SequenceId sequence) {
    finish_copy();
    std::vector<std::uint8_t> state(llama_state_seq_get_size(context_, sequence));
    state.resize(llama_state_seq_get_data(context_, state.data(), state.size(), sequence));
    return state;
}

bool Memory::load(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens) {
    finish_copy();
    empty(sequence);
    if (llama_state_seq_set_data(context_, state.data(), state.size(), sequence) == state.size() &&
        size(sequence) == n_tokens) {
        decoded_from_[sequence] = n_tokens;  // no snapshots came with it
        checkpoint(sequence, Mark::prompt);
        return true;
    }
    empty(sequence);
    return false;
}

}  // namespace specllama
