#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/checkpoints.h"
#include "runtime/state_layout.h"
#include "specllama/types.h"

struct llama_context;
struct llama_memory_i;

namespace specllama {

// The KV memory of a context. The model decides how it can be rewound. Attention memory can be cut
// anywhere (with a sliding window, only within the reach of the window). Recurrent and hybrid
// memory keeps snapshots, the states after each of the last few tokens of a decode, if llama.cpp
// has them for the architecture. Otherwise windows and states can only go back to a saved state.
class Memory {
 public:
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();
    // Shortest prefix worth copying, in tokens.
    static constexpr int kShortestCopy = 32;

    // How a context's sequences share the memory.
    struct Layout {
        int n_seq = 1;
        // Most branches of a sequence. Must be 0 with recurrent states or per_sequence_streams.
        int n_branches = 0;
        bool has_sliding_window = false;    // some layers have sliding windows
        bool per_sequence_streams = false;  // each sequence has its own part of the memory
        bool whole_window = false;          // sliding windows keep the whole text
        CheckpointLimits checkpoints = {};
    };

    // The context must outlive this.
    Memory(llama_context* context, const Layout& layout);

    // Whether each sequence has its own part of the memory.
    bool per_sequence_streams() const { return per_sequence_streams_; }
    // Whether some layers have a sliding window.
    bool has_sliding_window() const { return has_sliding_window_; }
    // Whether rewinding may need states of save_checkpoint().
    bool needs_checkpoints() const {
        return n_cuttable_ != kAnyNumber || (has_sliding_window() && !whole_window_);
    }
    // Most checkpoints of a sequence; 0: off, or not needed.
    int most_checkpoints() const { return needs_checkpoints() ? limits_.most : 0; }

    // Several continuations of a sequence can be decoded at once. Each has its own id, and shared
    // tokens have the ids of all that share them. ids(): the sequence's own id, then those of its
    // branches. branch(): call it before the decode; the first n_branches branches then hold the
    // sequence's content until the sequence is rewound.
    int n_branches() const { return n_branches_; }
    void branch(SequenceId sequence, int n_branches);
    // [1 + n_branches()]
    std::span<SequenceId> ids(SequenceId sequence);

    // Maximum number of tokens that can be cut off a sequence: any number, or, with recurrent
    // states, the number of snapshots, which may be 0. With snapshots they can be cut off only
    // once, directly after the decode that added them and at least one token before them.
    int n_cuttable() const { return n_cuttable_; }

    // Call these before each decode: expect_decode() once, then expect() for each sequence in the
    // decode, with its first position there.
    void expect_decode();
    void expect(SequenceId sequence, Position first) { decoded_from_[sequence] = first; }

    // Call it after the decode of an image: the sequence then ends at this position, even if no row
    // is at the one before. (With M-RoPE all rows of an image are at its first position, and the
    // next token is as many positions later as the image has rows or columns.)
    void extend(SequenceId sequence, int size);

    // Call it after a failed decode, which may have changed recurrent states, also those of other
    // sequences. If there are such states, each sequence goes back to its latest saved state, or is
    // emptied.
    void invalidate();

    // Empties all sequences and clears the values. llama.cpp multiplies values of unused cells by
    // 0, which would keep a NaN.
    void clear();

    // If needs_checkpoints(), saves the state of a sequence for rewind(). save_checkpoint(): for
    // later requests, unless main memory or the limits have no room for it. save_round(): until the
    // next round; throws std::bad_alloc.
    void save_checkpoint(SequenceId sequence);
    void save_round(SequenceId sequence);

    // Cuts a sequence to its first `keep` positions, or to fewer if it cannot be cut there. Returns
    // the number that remains: `keep`, or all if there were fewer; otherwise the size of a saved
    // state, or 0 if the sequence had to be emptied.
    int rewind(SequenceId sequence, int keep);
    // The result that rewind() is expected to return.
    int rewindable(SequenceId sequence, int keep) const;

    // Replaces the content of `to` by the first `keep` positions of `from`, or by as many of them
    // as can be copied. Returns their number. `from` is unchanged.
    int copy_prefix(SequenceId from, SequenceId to, int keep);
    // The result that copy_prefix() would return.
    int copyable_prefix(SequenceId from, int keep) const;
    // Whether a copy_prefix() is pending: llama.cpp copies only with the next decode.
    bool copying() const { return awaits_copy_.has_value(); }

    // share(): adds the positions [begin, end) of `from` to `to`, in the same cells. drop():
    // removes all positions of a sequence from `begin` on. Only with ContextPlan::n_forks.
    void share(SequenceId from, SequenceId to, Position begin, Position end);
    void drop(SequenceId sequence, Position begin);

    // state(): all content of a sequence. load(): loads such a state into a sequence; returns
    // false, leaving the sequence empty, if it is not a state of n_tokens tokens in such a memory.
    // fits(): whether a state, which may be forged, has the form of a state of `tokens` in such a
    // memory; call load() only if it is true. `held`: the sequence's present content, which is
    // kept.
    std::vector<std::uint8_t> state(SequenceId sequence);
    bool fits(SequenceId sequence, TokenSpan held, std::span<const std::uint8_t> state,
              TokenSpan tokens);
    bool load(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens);

    // A copy of all content of a sequence, and its checkpoints: as many as are not larger than the
    // rest of the copy, but at least two.
    struct Backup {
        int size = 0;   // positions
        int least = 0;  // fewest positions to which it can be cut
        std::vector<std::uint8_t> state;
        Checkpoints checkpoints;

        // The result of rewind() to `keep` once the backup is restored.
        int rewindable(int keep) const;
        std::size_t n_bytes() const { return state.size() + specllama::n_bytes(checkpoints); }
    };
    // Do not call these three while copying(). n_bytes(): size of the backup of a sequence.
    // restore(): restores a backup into any sequence of the memory that it came from; returns
    // false, leaving the sequence empty, if llama.cpp refuses it.
    Backup back_up(SequenceId sequence);
    std::size_t n_bytes(SequenceId sequence) const;
    bool restore(SequenceId sequence, const Backup& backup);

 private:
    // The state before a round. Its buffer is reused.
    struct RoundState {
        int size = 0;  // positions; 0: nothing is saved
        std::vector<std::uint8_t> state;
    };
    // A saved state; size 0: none.
    struct StateView {
        int size = 0;
        std::span<const std::uint8_t> state;
    };
    // The end of a sequence whose last rows are at position `highest` - 1.
    struct End {
        int highest = 0;
        int size = 0;
    };

    int highest(SequenceId sequence) const;
    int size(SequenceId sequence) const;
    bool in_reach(SequenceId sequence, int keep) const;
    int cut(SequenceId sequence, int keep);
    bool read(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens);
    void cut_branches(SequenceId sequence, int keep);
    void empty(SequenceId sequence);
    StateView latest(SequenceId sequence, int keep) const;
    bool has_checkpoint(SequenceId sequence, int size) const;
    bool copies_windows() const {
        return copying() && n_cuttable_ == kAnyNumber && has_sliding_window();
    }
    bool make_room(SequenceId sequence, int size, std::size_t n_bytes);
    int save(SequenceId sequence, std::vector<std::uint8_t>& state);
    bool restore(SequenceId sequence, const StateView& saved);
    template <typename Then>
    void decode_one(SequenceId sequence, const Then& then);
    void finish_copy();

    llama_context* context_;
    llama_memory_i* memory_;
    int n_branches_;
    std::vector<SequenceId> ids_;  // [sequence][1 + n_branches]
    bool per_sequence_streams_;
    bool whole_window_;
    bool has_sliding_window_;
    int n_swa_;
    int n_cuttable_;
    // With per_sequence_streams(): the last sequence copied to since the last decode. Others may
    // await their copies, too.
    std::optional<SequenceId> awaits_copy_;
    // [sequence]: first position of its last decode. With recurrent states: kAnyNumber if it was
    // not in the last decode; its size once it was cut or restored, which leaves no snapshots.
    std::vector<Position> decoded_from_;
    bool jumps_;             // whether positions may be skipped after an image
    std::vector<End> ends_;  // [sequence]: its end when it was last cut or extended
    CheckpointLimits limits_;
    std::vector<Checkpoints> checkpoints_;  // [sequence]
    std::vector<RoundState> rounds_;        // [sequence]
    std::optional<StateLayout> layout_;     // of states; learned before the first one is loaded
};

}  // namespace specllama
