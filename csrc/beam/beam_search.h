#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "beam/beams.h"
#include "beam/branches.h"
#include "beam/continuations.h"
#include "beam/foresight.h"
#include "beam/outlook.h"
#include "beam/trie.h"
#include "engine/sequence.h"
#include "engine/speculator.h"
#include "llama/context.h"
#include "specllama/beam.h"
#include "specllama/types.h"

namespace specllama {

// A beam search. In a round the target decodes what the running hypotheses lack, and what the
// Outlook says they will want next; the search then goes on as far as it knows what follows. So it
// takes fewer decodes than steps, and what it finds does not depend on who drafts.
//
// It has a KV memory of its own, as large as it may need and no larger than one request's.
class BeamSearch {
 public:
    // context: as the session's, settled. id: what the drafters know the search by, of no request.
    // Throws InvalidArgument when an option is out of range, or the context has no room for that
    // many tokens of each beam behind the prompt; and OutOfMemory, before anything is allocated.
    BeamSearch(const std::shared_ptr<const Model>& model, const ContextOptions& context,
               Speculator& speculator, SequenceId id, TokenSpan prompt, const BeamOptions& options);

    // Takes over what another memory of that kind holds of some tokens, as far as the prompt begins
    // like them. Before the first round.
    void reuse(TokenSpan tokens, std::span<const std::uint8_t> state);

    bool done() const { return hypotheses_.done(); }
    // A part of the prompt is decoded, or what is wanted next, and the steps are taken that this
    // allows. Throws DecodeError; the search is over then.
    void round();

    // What it has come to.
    std::vector<Beam> beams() const;
    // The prompt in the memory, once it is there.
    std::vector<std::uint8_t> prompt_state() { return target_.memory().state(Branches::kPrompt); }
    Stats& stats() { return request_.stats; }

 private:
    void prefill();
    void step();
    void learn(NodeId node, std::span<const float> logits);
    void advance();
    void look_ahead();
    int most_levels() const;
    int n_affordable() const;
    int choose_levels();
    void lay_out(int n_levels);
    void decode(std::size_t first, std::size_t last);
    FinishReason ends(NodeId node, Token token);
    void count_accepted();

    BeamOptions options_;
    int max_tokens_;
    int most_rows_;  // of a decode
    Context target_;
    const Vocab& vocab_;
    Speculator& speculator_;
    Sequence request_;
    Trie trie_;
    Beams hypotheses_;
    std::optional<Branches> branches_;  // once the prompt is there
    Continuations continuations_;
    Outlook outlook_;
    Foresight foresight_;
    Batch batch_;
    std::size_t longest_stop_ = 0;
    std::string tail_;  // of a text
    // Of a round.
    struct Row {
        NodeId node;
        SequenceId sequence;
        Source source;  // of what is decoded ahead
    };
    std::vector<Row> rows_;
    std::vector<int> n_rows_;  // [g]: rows of levels 0 to g
    // That a node was decoded ahead: in which round, -1: in none, and who said that it would come.
    struct Ahead {
        int round = -1;
        Source source = Source::other;
    };
    std::vector<Ahead> ahead_;  // [node]
};

}  // namespace specllama
