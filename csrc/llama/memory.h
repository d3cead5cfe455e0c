#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "specllama/types.h"

struct llama_context;
struct llama_memory_i;

namespace specllama {

// The KV memory of a context. What it can do is known from the model: attention memory can be cut
// anywhere (a sliding window only as far back as it still reaches). Recurrent and hybrid memory
// keeps the states after the last few tokens of a decode, its snapshots, where llama.cpp has them
// for the architecture; else it can only go back to a state that was saved.
class Memory {
 public:
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();
    // Of a prefix of fewer tokens a copy is not worth its while.
    static constexpr int kShortestCopy = 32;

    // What a state is saved for: prompts that begin like this sequence, or what a round may get
    // wrong. One of each is held per sequence.
    enum class Mark { prompt, round };

    // What a context's sequences have beside them.
    struct Layout {
        int n_seq = 1;
        // Most side branches of a sequence; only where the sequences do not lie apart and any
        // number of tokens can be cut.
        int n_branches = 0;
        bool split = false;  // the sequences lie apart
    };

    // The context must outlive this.
    Memory(llama_context* context, const Layout& layout);

    // Whether the sequences lie apart, each beside the others.
    bool split() const { return split_; }
    // Whether layers see the last tokens only.
    bool slides() const { return n_swa_ > 0; }

    // Several guesses at how a sequence goes on are decoded at once by giving each of them an id
    // of its own, and what they share the ids of all of them. The first id is the sequence's; each
    // of the others holds what the sequence holds from `branch`, to be called before that decode,
    // until the sequence is rewound.
    int n_branches() const { return n_branches_; }
    void branch(SequenceId sequence, int n_branches);
    // [1 + n_branches()]
    std::span<SequenceId> ids(SequenceId sequence);

    // Most tokens that can be cut off a sequence, once, right after the decode that added them and
    // at least one before them: any number, as many as there are snapshots, or 0.
    int n_cuttable() const { return n_cuttable_; }

    // Must be told before each decode; and then, for each sequence in it, its first position there.
    void expect_decode();
    void expect(SequenceId sequence, Position first) { decoded_from_[sequence] = first; }

    // Must be told of a decode that failed. States were being moved then, those of other sequences,
    // too: where there are any, each sequence goes back to what was saved of it, or is emptied.
    void distrust();

    // Saves the state of a sequence, for `rewind` to go back to. Does nothing where any number of
    // tokens can be cut, or when this very state is held already.
    void checkpoint(SequenceId sequence, Mark mark);

    // Cuts a sequence to its first `keep` positions, or to as many of them as it can go back to.
    // Returns how many remain: `keep`; the position of a checkpoint; or 0, the sequence having been
    // emptied.
    int rewind(SequenceId sequence, int keep);
    // What rewind would return, as far as can be known.
    int rewindable(SequenceId sequence, int keep) const;

    // Replaces what a sequence holds by the first `keep` positions of another one, or as many of
    // them as that can give, which is returned; the other one stays as it is.
    int copy(SequenceId from, SequenceId to, int keep);
    // What copy would return.
    int copyable(SequenceId from, int keep) const;

    // One sequence holds the positions [begin, end) of another one, too, in the same cells; and a
    // sequence loses all from a position on. With ContextOptions::n_forks only.
    void share(SequenceId from, SequenceId to, Position begin, Position end);
    void drop(SequenceId sequence, Position begin);

    // All that a sequence holds; and the same put into a sequence, which is left empty if that is
    // not what n_tokens tokens leave in such a memory.
    std::vector<std::uint8_t> state(SequenceId sequence);
    bool load(SequenceId sequence, std::span<const std::uint8_t> state, int n_tokens);

 private:
    struct Saved {
        int size = 0;  // positions; 0: nothing is saved
        std::vector<std::uint8_t> state;
    };

    int size(SequenceId sequence) const;
    // Most of a sequence's first `keep` positions that it holds or a saved state of it does.
    int held(SequenceId sequence, int keep) const;
    bool in_reach(SequenceId sequence, int keep) const;
    int cut(SequenceId sequence, int keep);
    void cut_branches(SequenceId sequence, int keep);
    void empty(SequenceId sequence);
    // Of the saved states of a sequence with at most `keep` positions the longest; null: none.
    const Saved* latest(SequenceId sequence, int keep) const;
    void save(SequenceId sequence, Saved& saved);
    bool restore(SequenceId sequence, const Saved& saved);
    void finish_copy();

    llama_context* context_;
    llama_memory_i* memory_;
    int n_branches_;
    std::vector<SequenceId> ids_;  // 1 + n_branches of each sequence
    bool split_;
    int n_swa_;
    int n_cuttable_;
    std::optional<SequenceId> awaits_copy_;  // that was copied to since the last decode
    // [sequence]: first position of its last decode; where there are snapshots, of the last decode
    // of all, if it was in that one, else kAnyNumber.
    std::vector<Position> decoded_from_;
    std::vector<std::array<Saved, 2>> saved_;  // [sequence][mark]
};

}  // namespace specllama
