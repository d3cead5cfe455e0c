#pragma once

#include <functional>
#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/trie.h"
#include "specllama/source.h"
#include "specllama/types.h"

namespace specllama {

// Foresees which nodes a beam search will need to know at its next steps. It plays the search ahead
// with the target's successors where these are known, and elsewhere with a drafter's tokens, each
// taken to be certain. (Leviathan et al. 2023, appendix A.4, where a smaller model plays the
// search.) Pure.
class Outlook {
 public:
    // A token that a drafter says may come.
    struct Guessed {
        Token token;
        Source source;
    };
    // A node whose successors are not known, and the source of the guess that they will be needed;
    // Source::other: the search itself, by the target's successors.
    struct Wanted {
        NodeId node;
        Source source;
    };

    // Replaces the tokens by what may follow the node, at most the given number.
    using Guess = std::function<void(NodeId, int, std::vector<Guessed>&)>;
    using Ends = std::function<bool(Token)>;

    // Looks n_levels steps ahead, or as far as there are guesses.
    void look(Trie& trie, std::span<const Hypothesis> running, int n_beams, int n_levels,
              const Guess& guess, const Ends& ends);

    // Number of levels foreseen, beside level 0, that of the running hypotheses.
    int n_levels() const { return static_cast<int>(levels_.size()) - 1; }
    // Nodes of a level whose successors are not known. If the parent of one is not known either, it
    // is among those of the level before.
    std::span<const Wanted> unknown(int level) const { return levels_[level].unknown; }
    // Whether all of these hypotheses, which run at a level, were foreseen there.
    bool foresaw(int level, std::span<const Hypothesis> running) const;

 private:
    struct Level {
        std::vector<NodeId> nodes;
        std::vector<Wanted> unknown;
    };
    // A hypothesis, and how a drafter says it goes on.
    struct Foreseen {
        Hypothesis hypothesis;
        int draft = -1;  // index in drafts_; -1: none was asked for
        int n_used = 0;  // tokens of that draft used so far
        Source source = Source::other;
    };

    bool add_drafted(Foreseen& one, int n_levels, const Guess& guess);
    const Guessed* next_drafted(const Foreseen& one) const;
    void enter(const Trie& trie, std::span<const Foreseen> foreseen);

    std::vector<Level> levels_;
    std::vector<Foreseen> foreseen_;
    std::vector<Foreseen> next_;
    std::vector<Extension> extensions_;
    std::vector<std::vector<Guessed>> drafts_;
};

}  // namespace specllama
