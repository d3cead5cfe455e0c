#pragma once

#include <functional>
#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/trie.h"
#include "specllama/source.h"
#include "specllama/types.h"

namespace specllama {

// Predicts which nodes a beam search will need at its next steps. It simulates the search with the
// target's successors where these are known, and otherwise with a drafter's tokens, as if they were
// the target's. (Leviathan et al. 2023, appendix A.4, where a smaller model simulates the search.)
// Pure.
class Lookahead {
 public:
    // A token proposed by a drafter.
    struct Candidate {
        Token token;
        Source source;
    };
    // A node with unknown successors, and the source of the candidate that needs them;
    // Source::other: the search itself, by the target's successors.
    struct Wanted {
        NodeId node;
        Source source;
    };

    // Replaces the tokens by a draft after the node, at most the given number.
    using Propose = std::function<void(NodeId, int, std::vector<Candidate>&)>;
    using Ends = std::function<bool(Token)>;

    // Looks n_levels steps ahead, or until candidates run out.
    void run(Trie& trie, std::span<const Hypothesis> running, int n_beams, int n_levels,
             const Propose& propose, const Ends& ends);

    // Number of predicted levels after level 0, that of the running hypotheses.
    int n_levels() const { return static_cast<int>(levels_.size()) - 1; }
    // Nodes of a level with unknown successors. If the parent of one is unknown, too, it is among
    // those of the level before.
    std::span<const Wanted> unknown(int level) const { return levels_[level].unknown; }
    // Whether all of these hypotheses, which run at a level, were predicted there.
    bool has_foreseen(int level, std::span<const Hypothesis> running) const;

 private:
    struct Level {
        std::vector<NodeId> nodes;
        std::vector<Wanted> unknown;
    };
    // A hypothesis, and a drafter's continuation of it.
    struct Expected {
        Hypothesis hypothesis;
        int draft = -1;  // index in drafts_; -1: none was requested
        int n_used = 0;  // tokens of that draft used so far
        Source source = Source::other;
    };

    bool add_drafted(Expected& one, int n_levels, const Propose& propose);
    const Candidate* next_drafted(const Expected& one) const;
    void add_level(const Trie& trie, std::span<const Expected> expected);

    std::vector<Level> levels_;
    std::vector<Expected> expected_;
    std::vector<Expected> next_;
    std::vector<Extension> extensions_;
    std::vector<std::vector<Candidate>> drafts_;
};

// Decides how many levels ahead a beam search should decode. It learns how often a step was
// predicted (see Lookahead), and chooses the number of levels g that gives the most steps per
// second,
//
//     (1 + sum over i <= g of rate^i) / seconds(rows of the levels up to g).
//
// This is Leviathan et al. 2023, theorem 3.8, with measured costs, and with a step of all beams
// instead of a token. Pure.
class LookaheadDepth {
 public:
    // rows[g]: rows of a decode with levels 0 to g. seconds(n): time of a decode of n rows. Returns
    // g; 0: nothing is decoded ahead.
    int choose(std::span<const int> rows, const std::function<double(int)>& seconds) const;

    // n_seen steps were taken within the lookahead; the first n_right of them were predicted.
    void learn(int n_seen, int n_right);

 private:
    double rate() const { return (n_right_ + 1) / (n_seen_ + 2); }

    double n_seen_ = 0;
    double n_right_ = 0;
};

}  // namespace specllama
