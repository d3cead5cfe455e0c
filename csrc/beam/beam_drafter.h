#pragma once

#include <memory>
#include <span>
#include <vector>

#include "beam/beams.h"
#include "beam/lookahead.h"
#include "beam/trie.h"
#include "draft/core_drafter.h"
#include "engine/sequence.h"
#include "specllama/types.h"

namespace specllama {

// Asks the drafters how the texts of a search may go on. To the drafters, the sequence is what all
// running hypotheses have in common, which only grows; the rest of a hypothesis is a draft to
// continue. Costly drafters are not asked; the first answer is used.
//
// An Error that a drafter throws is recorded in the request's statistics.
class BeamDrafter {
 public:
    // id: the drafters' sequence id for the search. Drafters and references must outlive this.
    BeamDrafter(std::span<const std::shared_ptr<CoreDrafter>> drafters, const Trie& trie,
                Sequence& request, SequenceId id, TokenSpan reference, const Vocabulary& vocab);
    ~BeamDrafter();
    BeamDrafter(const BeamDrafter&) = delete;
    BeamDrafter& operator=(const BeamDrafter&) = delete;

    bool none() const { return drafters_.empty(); }

    // Takes in the hypotheses that run now.
    void follow(std::span<const Hypothesis> running);

    // Replaces `tokens` by what may follow a node: at most n tokens, often none. The node must
    // descend from what the running hypotheses have in common.
    void propose(NodeId node, int n, std::vector<Lookahead::Candidate>& tokens);

 private:
    std::vector<CoreDrafter*> drafters_;
    const Trie& trie_;
    Sequence& request_;
    SequenceId id_;
    const Vocabulary& vocab_;
    NodeId common_ = Trie::kRoot;
    std::vector<Token> text_;    // the prompt and what the running hypotheses share
    std::vector<Token> suffix_;  // from there to the node
    DraftRequest proposal_;
};

}  // namespace specllama
