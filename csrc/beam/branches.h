#pragma once

#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/trie.h"
#include "llama/memory.h"
#include "specllama/types.h"

namespace specllama {

// Which sequences of the KV memory hold which nodes of a trie: a sequence holds a path from the
// root, its cells shared with the others that hold the same nodes, so that a token decoded in it
// sees just the text that it continues.
//
// The cells of a text lie in the order of its tokens: attention sums in the order of cells, and a
// search that decodes ahead must come to the same bits as one that does not. So what is dead keeps
// its cells, in a sequence of its own, but for those behind all that is alive, which are given
// back. The memory must have no other user.
class Branches {
 public:
    // The sequence that holds the prompt, and how many there must be beside it, which are empty.
    static constexpr SequenceId kPrompt = 0;
    static int n_forks(int n_beams) { return 2 * n_beams + 2; }

    // Memory and trie must outlive this, and the memory hold the whole prompt, of n_prompt tokens.
    Branches(Memory& memory, Trie& trie, int n_prompt, int n_beams);

    bool holds(NodeId node) const {
        return node == Trie::kRoot || (node < std::ssize(holders_) && holders_[node] > 0);
    }
    // Cells behind the prompt that are in use.
    int n_cells() const { return n_cells_; }

    // A round begins: lets go of what no running hypothesis can come to, and of what was taken. The
    // hypotheses must outlive the round.
    void begin_round(std::span<const Hypothesis> running);

    // The sequence that ends with a node which is held, to go on from it; it is taken until the
    // round is over. needed: if all are in use, one that was only decoded ahead gives way, whose
    // nodes become unknown; else kNone.
    SequenceId take(NodeId node, bool needed);

    // A node was decoded behind its parent, the end of a sequence that was taken. To be told in the
    // order of the batch.
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
    // Behind its last position.
    Position end_of(NodeId node) const { return n_prompt_ + trie_.depth(node); }
    void cut(Branch& branch, NodeId tip, int last_kept);

    Memory& memory_;
    Trie& trie_;
    int n_prompt_;
    SequenceId dead_;  // holds what no branch does any more
    std::vector<Branch> branches_;
    std::span<const Hypothesis> running_;
    std::vector<int> holders_;  // [node]: branches that hold it
    std::vector<int> cells_;    // [node]: its cell, counted from the prompt's end
    int n_cells_ = 0;
    int last_dead_ = -1;  // of the cells that nobody holds any more
};

}  // namespace specllama
