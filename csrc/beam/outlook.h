#pragma once

#include <functional>
#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/trie.h"
#include "specllama/source.h"
#include "specllama/types.h"

namespace specllama {

// What a beam search will want to know at its next steps, as far as it can be foreseen: the search
// itself, with what is known of the target's successors, and elsewhere with those of a drafter,
// each taken to be certain. (Leviathan et al. 2023, appendix A.4, where the search that guesses is
// a smaller model's.) Pure.
class Outlook {
 public:
    // A token that a drafter says may come.
    struct Guessed {
        Token token;
        Source source;
    };
    // A node that is not known, and who says that it will be wanted; of those that the target's
    // successors make likely, Source::other.
    struct Wanted {
        NodeId node;
        Source source;
    };

    // Replaces the tokens by what may follow a node, at most so many.
    using Guess = std::function<void(NodeId, int, std::vector<Guessed>&)>;
    using Ends = std::function<bool(Token)>;

    // Looks n_levels steps ahead, or as far as there is a guess.
    void look(Trie& trie, std::span<const Hypothesis> running, int n_beams, int n_levels,
              const Guess& guess, const Ends& ends);

    // Levels that were foreseen beyond that of the running hypotheses, which is level 0.
    int n_levels() const { return static_cast<int>(levels_.size()) - 1; }
    // Nodes of a level that are not known, each but those of level 0 and those behind known ones
    // behind one of the level before.
    std::span<const Wanted> unknown(int level) const { return levels_[level].unknown; }
    // Whether all hypotheses that run at a level were foreseen.
    bool foresaw(int level, std::span<const Hypothesis> running) const;

 private:
    struct Level {
        std::vector<NodeId> nodes;
        std::vector<Wanted> unknown;
    };
    // A hypothesis, and how a drafter says it goes on.
    struct Foreseen {
        Hypothesis hypothesis;
        int draft = -1;  // in drafts_; -1: none was asked for
        int n_used = 0;  // tokens of it
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
