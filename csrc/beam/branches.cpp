#include "beam/branches.h"

#include <algorithm>

namespace specllama {

Branches::Branches(Memory& memory, Trie& trie, int n_prompt, int n_beams)
    : memory_(memory), trie_(trie), n_prompt_(n_prompt), dead_(kPrompt + n_forks(n_beams)) {
    for (SequenceId sequence = kPrompt + 1; sequence < dead_; ++sequence) {
        branches_.push_back({sequence});
        memory_.share(kPrompt, sequence, 0, n_prompt_);
    }
}

void Branches::begin_round(std::span<const Hypothesis> running) {
    running_ = running;
    int last_kept = last_dead_;
    for (const Branch& branch : branches_)
        if (const NodeId tip = live_part(branch); tip != Trie::kRoot)
            last_kept = std::max(last_kept, cells_[tip]);
    for (Branch& branch : branches_) {
        cut(branch, live_part(branch), last_kept);
        branch.taken = false;
    }
    n_cells_ = last_kept + 1;
}

// The deepest node of a branch that is a running hypothesis or its ancestor, or that one may still
// reach.
NodeId Branches::live_part(const Branch& branch) const {
    NodeId deepest = Trie::kRoot;
    for (const Hypothesis& one : running_) {
        const NodeId common = trie_.common(branch.tip, one.node);
        if (common == one.node) return branch.tip;
        if (trie_.depth(common) > trie_.depth(deepest)) deepest = common;
    }
    return deepest;
}

// Cuts a branch back to `tip`. The cells that only this branch held go to dead_, except for those
// after last_kept, which are freed.
void Branches::cut(Branch& branch, NodeId tip, int last_kept) {
    if (branch.tip == tip) return;
    NodeId first_dead = Trie::kNone;
    NodeId last_dead = Trie::kNone;
    for (NodeId node = branch.tip; node != tip; node = trie_.parent(node)) {
        if (--holders_[node] > 0) continue;
        trie_.forget(node);
        if (cells_[node] > last_kept) continue;
        first_dead = node;
        if (last_dead == Trie::kNone) last_dead = node;
    }
    if (first_dead != Trie::kNone) {
        memory_.share(branch.sequence, dead_, end_of(first_dead) - 1, end_of(last_dead));
        last_dead_ = std::max(last_dead_, cells_[last_dead]);
    }
    memory_.drop(branch.sequence, end_of(tip));
    branch.tip = tip;
}

SequenceId Branches::take(NodeId node, bool needed) {
    const auto ends_here = std::ranges::find_if(
        branches_, [&](const Branch& branch) { return !branch.taken && branch.tip == node; });
    if (ends_here != branches_.end()) {
        ends_here->taken = true;
        return ends_here->sequence;
    }
    Branch* const branch = spare(needed);
    if (branch == nullptr) return kNone;
    const SequenceId from = holder(node);
    const NodeId common = trie_.common(branch->tip, node);
    cut(*branch, common, n_cells_);
    memory_.share(from, branch->sequence, end_of(common), end_of(node));
    for (NodeId one = node; one != common; one = trie_.parent(one)) ++holders_[one];
    branch->tip = node;
    branch->taken = true;
    return branch->sequence;
}

// A branch that can be given up without a loss; otherwise, if one is needed, a branch that no
// running hypothesis continues from. There is always one, because there are more branches than
// hypotheses can need.
Branches::Branch* Branches::spare(bool needed) {
    Branch* best = nullptr;
    for (Branch& branch : branches_) {
        if (branch.taken) continue;
        if (branch.tip == Trie::kRoot || holders_[branch.tip] > 1) return &branch;
        if (needed && !is_sole(branch)) best = &branch;
    }
    return best;
}

// Whether a running hypothesis continues from a node that only this branch holds.
bool Branches::is_sole(const Branch& branch) const {
    return std::ranges::any_of(running_, [&](const Hypothesis& one) {
        const NodeId node = holds(one.node) ? one.node : trie_.parent(one.node);
        return node != Trie::kRoot && holders_[node] == 1 && trie_.descends(branch.tip, node);
    });
}

SequenceId Branches::holder(NodeId node) const {
    if (node == Trie::kRoot) return kPrompt;
    return std::ranges::find_if(
               branches_, [&](const Branch& branch) { return trie_.descends(branch.tip, node); })
        ->sequence;
}

void Branches::add(SequenceId sequence, NodeId node) {
    if (node >= std::ssize(holders_)) {
        holders_.resize(trie_.size());
        cells_.resize(trie_.size());
    }
    at(sequence).tip = node;
    holders_[node] = 1;
    cells_[node] = n_cells_++;
}

}  // namespace specllama
