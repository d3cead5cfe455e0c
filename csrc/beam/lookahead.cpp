#include "beam/lookahead.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specllama {

namespace {

// Factor by which the weight of earlier observations decays with each new one.
constexpr double kMemory = 0.95;

// Decoding ahead must be expected to be faster by this factor, because the best of several
// estimates is too good on average.
constexpr double kMargin = 1.05;

}  // namespace

void Lookahead::run(Trie& trie, std::span<const Hypothesis> running, int n_beams, int n_levels,
                    const Propose& propose, const Ends& ends) {
    levels_.clear();
    drafts_.clear();
    expected_.clear();
    for (const Hypothesis& one : running) expected_.push_back({one});
    add_level(trie, expected_);
    while (this->n_levels() < n_levels) {
        extensions_.clear();
        for (Expected& one : expected_) {
            if (trie.known(one.hypothesis.node))
                add_extensions(trie, one.hypothesis, extensions_);
            else if (!add_drafted(one, n_levels - this->n_levels(), propose))
                return;
        }
        rank(extensions_);
        next_.clear();
        for (const Extension& one : extensions_) {
            if (std::ssize(next_) == n_beams) break;
            if (ends(one.successor.token)) continue;
            const auto from = std::ranges::find(
                expected_, one.parent, [](const Expected& it) { return it.hypothesis.node; });
            const NodeId node = trie.child(one.parent, one.successor.token);
            Expected& added = next_.emplace_back(Expected{{node, one.logprob}});
            const Candidate* const candidate = next_drafted(*from);
            if (candidate == nullptr || candidate->token != one.successor.token) continue;
            added.draft = from->draft;
            added.n_used = from->n_used + 1;
            added.source = candidate->source;
        }
        if (next_.empty()) return;
        expected_.swap(next_);
        add_level(trie, expected_);
    }
}

// Adds the extension that a drafter proposes; returns false if there is none: without a successor
// of every hypothesis the simulation cannot continue.
bool Lookahead::add_drafted(Expected& one, int n_levels, const Propose& propose) {
    const auto& [node, logprob] = one.hypothesis;
    if (one.draft < 0) {
        one.draft = static_cast<int>(drafts_.size());
        propose(node, n_levels, drafts_.emplace_back());
    }
    const Candidate* const candidate = next_drafted(one);
    if (candidate == nullptr) return false;
    extensions_.push_back({node, {candidate->token, 0}, logprob});
    return true;
}

// The next token of its draft; null: none.
const Lookahead::Candidate* Lookahead::next_drafted(const Expected& one) const {
    if (one.draft < 0 || one.n_used == std::ssize(drafts_[one.draft])) return nullptr;
    return &drafts_[one.draft][one.n_used];
}

void Lookahead::add_level(const Trie& trie, std::span<const Expected> expected) {
    Level& level = levels_.emplace_back();
    for (const Expected& one : expected) {
        level.nodes.push_back(one.hypothesis.node);
        if (!trie.known(one.hypothesis.node))
            level.unknown.push_back({one.hypothesis.node, one.source});
    }
}

bool Lookahead::has_foreseen(int level, std::span<const Hypothesis> running) const {
    return std::ranges::all_of(running, [&](const Hypothesis& one) {
        return std::ranges::find(levels_[level].nodes, one.node) != levels_[level].nodes.end();
    });
}

int LookaheadDepth::choose(std::span<const int> rows,
                           const std::function<double(int)>& seconds) const {
    int best = 0;
    double best_speed = kMargin / seconds(rows[0]);
    double steps = 1;
    for (std::size_t g = 1; g < rows.size(); ++g) {
        steps += std::pow(rate(), g);
        const double speed = steps / seconds(rows[g]);
        if (speed <= best_speed) continue;
        best = static_cast<int>(g);
        best_speed = speed;
    }
    return best;
}

void LookaheadDepth::learn(int n_seen, int n_right) {
    n_seen_ = kMemory * n_seen_ + n_seen;
    n_right_ = kMemory * n_right_ + n_right;
}

}  // namespace specllama
