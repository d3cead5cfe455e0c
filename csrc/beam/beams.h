#pragma once

#include <functional>
#include <span>
#include <vector>

#include "beam/trie.h"
#include "specllama/beam.h"
#include "specllama/types.h"

namespace specllama {

// A running text of the search and its log-probability. All have the same length.
struct Hypothesis {
    NodeId node = Trie::kRoot;
    double logprob = 0;
};

// A text that has ended.
struct Ended {
    NodeId node = Trie::kRoot;
    double logprob = 0;
    double score = 0;
    FinishReason reason = FinishReason::none;
};

// A hypothesis and one more token, which may become a hypothesis at the next step.
struct Extension {
    NodeId parent = Trie::kRoot;
    Successor successor;
    double logprob = 0;  // of the whole text
};

// The rule of a beam search, as in Hugging Face's transformers (GenerationMixin._beam_search). Each
// step ranks all successors of the running hypotheses. Among the first n_beams, those that end a
// text are kept as ended (at max_tokens, all of them end); the first n_beams that do not end a text
// continue. Only the n_beams ended texts with the highest scores are kept. Pure.
class Beams {
 public:
    // Why a node's text ends if this token follows; none: it does not end.
    using Ends = std::function<FinishReason(NodeId, Token)>;

    // max_tokens: that of `options`, resolved. The trie must outlive this.
    Beams(Trie& trie, BeamOptions options, int max_tokens);

    // The best first. All have the same number of tokens.
    std::span<const Hypothesis> running() const { return running_; }
    int n_steps() const { return n_steps_; }
    bool done() const { return done_; }
    // The best first.
    std::span<const Ended> ended() const { return ended_; }

    // Takes a step of one token. The successors of the running hypotheses must be known.
    void step(const Ends& ends);

 private:
    double score(double logprob, int n_tokens) const;
    bool is_over() const;

    Trie& trie_;
    BeamOptions options_;
    int max_tokens_;
    int n_steps_ = 0;
    bool done_ = false;
    std::vector<Hypothesis> running_{1};
    std::vector<Ended> ended_;
    std::vector<Extension> extensions_;
};

// Fills `out` (at most n_vocab long) with the likeliest tokens of a row of logits [n_vocab], the
// likeliest first, among equals the lowest id. Log-probabilities are correct to about six digits,
// and have the same bits for the same row. Returns false if the row holds a NaN or no finite
// number.
bool best_successors(std::span<const float> logits, std::span<Successor> out);

// add_extensions adds the known extensions of a hypothesis that have a probability above 0. rank
// puts the likeliest first, and among equals the one added first. (Node ids cannot decide, because
// they depend on drafts.)
void add_extensions(const Trie& trie, const Hypothesis& hypothesis,
                    std::vector<Extension>& extensions);
void rank(std::vector<Extension>& extensions);

}  // namespace specllama
