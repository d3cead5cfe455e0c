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

// Asks the drafters for continuations of a search's texts. For the drafters, the sequence is the
// common prefix of all running hypotheses, which only grows; the rest of a hypothesis is a draft to
// continue. Drafters with a step cost are not asked. The first answer is used.
//
// A drafter's Error is recorded in the request's statistics.
class BeamDrafter {
 public:
    // id: the drafters' sequence id for the search. Drafters and references must outlive this.
    BeamDrafter(std::span<const std::shared_ptr<CoreDrafter>> drafters, const Trie& trie,
                Sequence& request, SequenceId id, TokenSpan reference, const Vocabulary& vocab);
    ~BeamDrafter();
    BeamDrafter(const BeamDrafter&) = delete;
    BeamDrafter& operator=(const BeamDrafter&) = delete;

    bool none() const { return drafters_.empty(); }

    // Updates the sequence to the running hypotheses.
    void follow(std::span<const Hypothesis> running);

    // Replaces `tokens` by a draft after a node: at most n tokens, often none. The node must
    // descend from the common prefix of the running hypotheses.
    void propose(NodeId node, int n, std::vector<Lookahead::Candidate>& tokens);

 private:
    std::vector<CoreDrafter*> drafters_;
    const Trie& trie_;
    Sequence& request_;
    SequenceId id_;
    const Vocabulary& vocab_;
    NodeId common_ = Trie::kRoot;
    std::vector<Token> text_;    // the prompt and the common prefix of the running hypotheses
    std::vector<Token> suffix_;  // from there to the node
    DraftRequest proposal_;
};

}  // namespace specllama
