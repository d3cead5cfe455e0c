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
// anywhere (with a sliding window, only as far back as the window still reaches). Recurrent and
// hybrid memory keeps snapshots, the states after each of the last few tokens of a decode, if
// llama.cpp has them for the architecture. Beyond that, windows and states can only go back to
// where they were saved.
class Memory {
 public:
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();
    // Tokens of the shortest prefix that is worth copying.
    static constexpr int kShortestCopy = 32;

    // How a context's sequences share the memory.
    struct Layout {
        int n_seq = 1;
        // Most side branches of a sequence. Must be 0 with recurrent states, or if the sequences
        // lie apart.
        int n_branches = 0;
        bool has_sliding_window = false;  // some layers have sliding windows
        bool per_sequence_streams =
            false;                  // the sequences lie apart: each has its own part of the memory
        bool whole_window = false;  // sliding windows keep the whole text
        CheckpointLimits checkpoints = {};
    };

    // The context must outlive this.
    Memory(llama_context* context, const Layout& layout);

    // Whether the sequences lie apart: each has its own part of the memory.
    bool per_sequence_streams() const { return per_sequence_streams_; }
    // Whether some layers have a sliding window.
    bool has_sliding_window() const { return has_sliding_window_; }
    // Whether there may be nothing else to go back to than what save_checkpoint() saves.
    bool needs_checkpoints() const {
        return n_cuttable_ != kAnyNumber || (has_sliding_window() && !whole_window_);
    }
    // Most checkpoints of a sequence; 0: there are none, or they are not needed.
    int most_checkpoints() const { return needs_checkpoints() ? limits_.most : 0; }

    // Several guesses at how a sequence goes on can be decoded at once. Each guess has an id of its
    // own, and tokens that guesses share have the ids of all of them. ids(): first the sequence's
    // own id, then those of its side branches. branch(), to be called before the decode, makes the
    // first n_branches of these hold what the sequence holds, until the sequence is rewound.
    int n_branches() const { return n_branches_; }
    void branch(SequenceId sequence, int n_branches);
    // [1 + n_branches()]
    std::span<SequenceId> ids(SequenceId sequence);

    // Most tokens that can be cut off a sequence: any number, or, with recurrent states, the number
    // of snapshots, which may be 0. With snapshots they can be cut off only once, right after the
    // decode that added them and at least one token before them.
    int n_cuttable() const { return n_cuttable_; }

    // To be called before each decode: expect_decode() once, then expect() for each sequence in the
    // decode, with its first position there.
    void expect_decode();
    void expect(SequenceId sequence, Position first) { decoded_from_[sequence] = first; }

    // To be called after the decode of an image: the sequence then ends at this position, though no
    // row of it may be at the one before. (With M-RoPE all rows of an image are at its first
    // position, and what follows is as many positions later as the image has rows or columns.)
    void extend(SequenceId sequence, int size);

    // To be called after a decode that failed. It may have moved recurrent states, those of other
    // sequences, too. If there are such states, each sequence goes back to its latest saved state,
    // or is emptied.
    void invalidate();

    // Empties all sequences, and forgets the values: of cells without a token, too, llama.cpp
    // multiplies them by 0, which mends no NaN.
    void clear();

    // If needs_checkpoints(), saves the state of a sequence for rewind() to go back to.
    // save_checkpoint(): for later requests, unless the main memory or the limits have no room for
    // it. save_round(): until the next round; throws std::bad_alloc.
    void save_checkpoint(SequenceId sequence);
    void save_round(SequenceId sequence);

    // Cuts a sequence to its first `keep` positions, or to as many of them as it can go back to.
    // Returns how many remain: `keep`, or all if there were fewer; else the size of a checkpoint,
    // or 0 if the sequence had to be emptied.
    int rewind(SequenceId sequence, int keep);
    // What rewind() would return, as far as that can be known.
    int rewindable(SequenceId sequence, int keep) const;

    // Replaces what `to` holds by the first `keep` positions of `from`, or by as many of them as
    // `from` can give. Returns how many. `from` stays as it is.
    int copy_prefix(SequenceId from, SequenceId to, int keep);
    // What copy_prefix() would return.
    int copyable_prefix(SequenceId from, int keep) const;
    // Whether llama.cpp copies only with the next decode what copy_prefix() has put into a
    // sequence.
    bool copying() const { return awaits_copy_.has_value(); }

    // share(): `to` also holds the positions [begin, end) of `from`, in the same cells. drop(): a
    // sequence loses all positions from `begin` on. With ContextPlan::n_forks only.
    void share(SequenceId from, SequenceId to, Position begin, Position end);
    void drop(SequenceId sequence, Position begin);

    // state(): all that a sequence holds. load(): puts such a state into a sequence; returns false,
    // leaving the sequence empty, if it is not what n_tokens tokens leave in such a memory.
    // fits(): whether a state, which may be forged, is one that `tokens` leave in such a memory, as
    // far as its form shows; only then it may be loaded. `held`: what the sequence holds now, which
    // stays.
    std::vector<std::uint8_t> state(SequenceId sequence);
    bool fits(SequenceId sequence, TokenSpan held, std::span<const std::uint8_t> state,
              TokenSpan tokens);
    bool load(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens);

    // A copy of all that a sequence holds, and its checkpoints: as many as are no larger than the
    // rest of the copy, but at least two.
    struct Backup {
        int size = 0;   // positions
        int least = 0;  // fewest positions that can remain when it is cut
        std::vector<std::uint8_t> state;
        Checkpoints checkpoints;

        // What rewind() to `keep` will return once the backup is put back.
        int rewindable(int keep) const;
        std::size_t n_bytes() const { return state.size() + specllama::n_bytes(checkpoints); }
    };
    // All three not while copying(). n_bytes(): those of the backup of a sequence. restore(): puts
    // a backup back, into any sequence of the memory that it was taken of; returns false, leaving
    // the sequence empty, if the memory does not take it.
    Backup back_up(SequenceId sequence);
    std::size_t n_bytes(SequenceId sequence) const;
    bool restore(SequenceId sequence, const Backup& backup);

 private:
    // The state before a round. Its buffer is used again.
    struct RoundState {
        int size = 0;  // positions; 0: nothing is saved
        std::vector<std::uint8_t> state;
    };
    // A saved state; size 0: none.
    struct StateView {
        int size = 0;
        std::span<const std::uint8_t> state;
    };
    // Where a sequence ends whose last rows are at position `highest` - 1.
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
    // With per_sequence_streams(): the sequence copied to last, if that was since the last decode.
    // There may be others.
    std::optional<SequenceId> awaits_copy_;
    // [sequence]: first position of its last decode. With recurrent states: only if it was in the
    // last decode of all, else kAnyNumber; its size once it was cut or restored, which leaves no
    // snapshots.
    std::vector<Position> decoded_from_;
    bool jumps_;             // whether positions may be left out after an image
    std::vector<End> ends_;  // [sequence]: where it ended when it was cut or extended last
    CheckpointLimits limits_;
    std::vector<Checkpoints> checkpoints_;  // [sequence]
    std::vector<RoundState> rounds_;        // [sequence]
    std::optional<StateLayout> layout_;     // of states; learnt before the first is loaded
};

}  // namespace specllama
