#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "beam/beam_drafter.h"
#include "beam/beams.h"
#include "beam/branches.h"
#include "beam/lookahead.h"
#include "beam/trie.h"
#include "engine/sequence.h"
#include "engine/speculator/speculator.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "specllama/beam.h"
#include "specllama/types.h"

namespace specllama {

// A beam search. In a round, the target decodes the nodes whose successors the running hypotheses
// need, and those that they will need next by the Lookahead. Then the search takes as many steps as
// it knows successors for. So it needs fewer decodes than steps, and its result does not depend on
// the drafters.
//
// It has a separate KV memory, as large as it may need and not larger than that of one request.
class BeamSearch {
 public:
    // context: the session's, resolved. id: the drafters' sequence id for the search, which no
    // request has. Throws InvalidArgument if an option is out of range, or if the context has no
    // room after the prompt for max_tokens of each beam; and OutOfMemory, before anything is
    // allocated.
    BeamSearch(const std::shared_ptr<const Model>& model, const ContextPlan& context,
               Speculator& speculator, SequenceId id, TokenSpan prompt, const BeamOptions& options);

    // Loads the state of these tokens from another memory of that kind, and keeps the common prefix
    // with the prompt. Call it before the first round.
    void reuse(TokenSpan tokens, std::span<const std::uint8_t> state);

    bool done() const { return hypotheses_.done(); }
    // Decodes a part of the prompt, or the nodes that are needed next, and takes the steps that
    // this allows. Throws DecodeError; the search is then over.
    void round();

    // The ended texts, the best first.
    std::vector<Beam> beams() const;
    // The memory's state of the prompt, once the prompt is decoded.
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
    int most_rows_;  // in a decode
    Context target_;
    const Vocab& vocab_;
    Speculator& speculator_;
    Sequence request_;
    Trie trie_;
    Beams hypotheses_;
    std::optional<Branches> branches_;  // once the prompt is decoded
    BeamDrafter drafter_;
    Lookahead lookahead_;
    LookaheadDepth lookahead_depth_;
    Batch batch_;
    std::size_t longest_stop_ = 0;
    std::string tail_;  // the end of a text
    // The rows of a round.
    struct Row {
        NodeId node;
        SequenceId sequence;
        Source source;  // source of its draft, if it is decoded ahead
    };
    std::vector<Row> rows_;
    std::vector<int> n_rows_;  // [g]: rows of levels 0 to g
    // The round in which a node was decoded ahead (-1: none), and the source of its draft.
    struct Ahead {
        int round = -1;
        Source source = Source::other;
    };
    std::vector<Ahead> ahead_;  // [node]
};

}  // namespace specllama
