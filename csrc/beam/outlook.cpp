#include "beam/outlook.h"

#include <algorithm>

namespace specllama {

void Outlook::look(Trie& trie, std::span<const Hypothesis> running, int n_beams, int n_levels,
                   const Guess& guess, const Ends& ends) {
    levels_.clear();
    drafts_.clear();
    foreseen_.clear();
    for (const Hypothesis& one : running) foreseen_.push_back({one});
    enter(trie, foreseen_);
    while (this->n_levels() < n_levels) {
        extensions_.clear();
        for (Foreseen& one : foreseen_) {
            if (trie.known(one.hypothesis.node))
                add_extensions(trie, one.hypothesis, extensions_);
            else if (!add_drafted(one, n_levels - this->n_levels(), guess))
                return;
        }
        rank(extensions_);
        next_.clear();
        for (const Extension& one : extensions_) {
            if (std::ssize(next_) == n_beams) break;
            if (ends(one.successor.token)) continue;
            const auto from = std::ranges::find(
                foreseen_, one.parent, [](const Foreseen& it) { return it.hypothesis.node; });
            const NodeId node = trie.child(one.parent, one.successor.token);
            Foreseen& added = next_.emplace_back(Foreseen{{node, one.logprob}});
            const Guessed* const guessed = next_drafted(*from);
            if (guessed == nullptr || guessed->token != one.successor.token) continue;
            added.draft = from->draft;
            added.n_used = from->n_used + 1;
            added.source = guessed->source;
        }
        if (next_.empty()) return;
        foreseen_.swap(next_);
        enter(trie, foreseen_);
    }
}

// Adds the extension that a drafter guesses; false if there is none: without a successor of every
// hypothesis the search cannot be played on.
bool Outlook::add_drafted(Foreseen& one, int n_levels, const Guess& guess) {
    const auto& [node, logprob] = one.hypothesis;
    if (one.draft < 0) {
        one.draft = static_cast<int>(drafts_.size());
        guess(node, n_levels, drafts_.emplace_back());
    }
    const Guessed* const guessed = next_drafted(one);
    if (guessed == nullptr) return false;
    extensions_.push_back({node, {guessed->token, 0}, logprob});
    return true;
}

// The next token of its draft; null: there is none.
const Outlook::Guessed* Outlook::next_drafted(const Foreseen& one) const {
    if (one.draft < 0 || one.n_used == std::ssize(drafts_[one.draft])) return nullptr;
    return &drafts_[one.draft][one.n_used];
}

void Outlook::enter(const Trie& trie, std::span<const Foreseen> foreseen) {
    Level& level = levels_.emplace_back();
    for (const Foreseen& one : foreseen) {
        level.nodes.push_back(one.hypothesis.node);
        if (!trie.known(one.hypothesis.node))
            level.unknown.push_back({one.hypothesis.node, one.source});
    }
}

bool Outlook::foresaw(int level, std::span<const Hypothesis> running) const {
    return std::ranges::all_of(running, [&](const Hypothesis& one) {
        return std::ranges::find(levels_[level].nodes, one.node) != levels_[level].nodes.end();
    });
}

}  // namespace specllama
