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

// Asks the drafters how the texts of a search may go on. To the drafters, the sequence is what all
// running hypotheses have in common, which only grows; the rest of a hypothesis is a draft to
// continue. Costly drafters are not asked; the first answer is used.
//
// An Error that a drafter throws is recorded in the request's statistics.
class Continuations {
 public:
    // id: the drafters' sequence id for the search. Drafters and references must outlive this.
    Continuations(std::span<const std::shared_ptr<Drafter>> drafters, const Trie& trie,
                  Sequence& request, SequenceId id, TokenSpan reference, const Vocabulary& vocab);
    ~Continuations();
    Continuations(const Continuations&) = delete;
    Continuations& operator=(const Continuations&) = delete;

    bool none() const { return drafters_.empty(); }

    // Takes in the hypotheses that run now.
    void follow(std::span<const Hypothesis> running);

    // Replaces `tokens` by what may follow a node: at most n tokens, often none. The node must
    // descend from what the running hypotheses have in common.
    void guess(NodeId node, int n, std::vector<Outlook::Guessed>& tokens);

 private:
    std::vector<Drafter*> drafters_;
    const Trie& trie_;
    Sequence& request_;
    SequenceId id_;
    const Vocabulary& vocab_;
    NodeId stem_ = Trie::kRoot;
    std::vector<Token> text_;    // the prompt and the stem
    std::vector<Token> behind_;  // from the stem to the node
    Proposal proposal_;
};

}  // namespace specllama
