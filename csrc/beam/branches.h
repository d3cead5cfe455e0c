#pragma once

#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/trie.h"
#include "runtime/memory.h"
#include "specllama/types.h"

namespace specllama {

// Tracks which sequences of the KV memory hold which nodes of a trie. A sequence holds a path from
// the root and shares its cells with the other sequences that hold the same nodes. So a token
// decoded in it attends to exactly the text that it continues.
//
// The cells of a text are in the order of its tokens: attention sums in the order of cells, and a
// search that decodes ahead must get the same bits as one that does not. So dead nodes keep their
// cells, held by a separate sequence, except for those after all live ones, which are freed. The
// memory must have no other user.
class Branches {
 public:
    // The sequence that holds the prompt, and the number of empty sequences needed in addition.
    static constexpr SequenceId kPrompt = 0;
    static int n_forks(int n_beams) { return 2 * n_beams + 2; }

    // Memory and trie must outlive this. The memory must hold the whole prompt of n_prompt tokens.
    Branches(Memory& memory, Trie& trie, int n_prompt, int n_beams);

    bool holds(NodeId node) const {
        return node == Trie::kRoot || (node < std::ssize(holders_) && holders_[node] > 0);
    }
    // Cells in use after the prompt.
    int n_cells() const { return n_cells_; }

    // Begins a round: releases the nodes that no running hypothesis can reach, and the sequences
    // that were taken. The hypotheses must outlive the round.
    void begin_round(std::span<const Hypothesis> running);

    // Returns a sequence that ends with this node (which must be held) to continue from it. The
    // sequence is taken until the round is over. If all are in use: with `needed`, a sequence that
    // was only decoded ahead is replaced, and its nodes become unknown; otherwise returns kNone.
    SequenceId take(NodeId node, bool needed);

    // Call it for each node decoded in a taken sequence that ended with its parent, in the order of
    // the batch.
    void add(SequenceId sequence, NodeId node);

    static constexpr SequenceId kNone = -1;

 private:
    struct Branch {
        SequenceId sequence;
        NodeId tip = Trie::kRoot;
        bool taken = false;
    };

    Branch& at(SequenceId sequence) { return branches_[sequence - branches_.front().sequence]; }
    NodeId live_part(const Branch& branch) const;
    bool is_sole(const Branch& branch) const;
    Branch* spare(bool needed);
    SequenceId holder(NodeId node) const;
    // The position after the node's token.
    Position end_of(NodeId node) const { return n_prompt_ + trie_.depth(node); }
    void cut(Branch& branch, NodeId tip, int last_kept);

    Memory& memory_;
    Trie& trie_;
    int n_prompt_;
    SequenceId dead_;  // holds the cells that no branch holds
    std::vector<Branch> branches_;
    std::span<const Hypothesis> running_;
    std::vector<int> holders_;  // [node]: branches that hold it
    std::vector<int> cells_;    // [node]: its cell, counted from the prompt's end
    int n_cells_ = 0;
    int last_dead_ = -1;  // the last cell that only dead_ holds; -1: none
};

}  // namespace specllama
