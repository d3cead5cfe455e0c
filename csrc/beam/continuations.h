#pragma once

#include <memory>
#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/outlook.h"
#include "beam/trie.h"
#include "engine/sequence.h"
#include "specllama/drafter.h"
#include "specllama/types.h"

namespace specllama {

// How the texts of a search go on by what drafters say. They follow what all running hypotheses
// have in common, which only grows, and go on from there along a hypothesis as from a draft. Only
// drafters whose tokens take no time are asked; the first that has an answer is believed.
//
// What a drafter throws as an Error is recorded in the statistics.
class Continuations {
 public:
    // id: what the drafters know the search by. Everything must outlive this.
    Continuations(std::span<const std::shared_ptr<Drafter>> drafters, const Trie& trie,
                  Sequence& request, SequenceId id, TokenSpan reference, const Vocab& vocab);
    ~Continuations();
    Continuations(const Continuations&) = delete;
    Continuations& operator=(const Continuations&) = delete;

    bool none() const { return drafters_.empty(); }

    // The hypotheses that run now.
    void follow(std::span<const Hypothesis> running);

    // Replaces `tokens` by what may follow a node, which descends from what they have in common: at
    // most n, often none.
    void guess(NodeId node, int n, std::vector<Outlook::Guessed>& tokens);

 private:
    std::vector<Drafter*> drafters_;
    const Trie& trie_;
    Sequence& request_;
    SequenceId id_;
    const Vocab& vocab_;
    NodeId stem_ = Trie::kRoot;
    std::vector<Token> text_;    // the prompt and the stem
    std::vector<Token> behind_;  // from the stem to the node
    Proposal proposal_;
};

}  // namespace specllama
