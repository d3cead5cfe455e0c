#pragma once

#include <functional>
#include <span>
#include <vector>

#include "beam/trie.h"
#include "specllama/beam.h"
#include "specllama/types.h"

namespace specllama {

// A text of the search, all of one length at a step, and the logarithm of its probability.
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

// What may become a hypothesis at the next step.
struct Extension {
    NodeId parent = Trie::kRoot;
    Successor successor;
    double logprob = 0;  // of the whole
};

// The rule of a beam search, that of Hugging Face's transformers (GenerationMixin._beam_search).
// At each step all successors of the running hypotheses are ranked. Of the first n_beams those that
// end are done, by max_tokens all; the first n_beams that do not end run on. Of those that are done
// the n_beams with the highest scores are kept. Pure.
class Beams {
 public:
    // Why the text of a node ends with its child of this token; none: it does not.
    using Ends = std::function<FinishReason(NodeId, Token)>;

    // max_tokens: of `options`, settled. The trie must outlive this.
    Beams(Trie& trie, BeamOptions options, int max_tokens);

    // The best first. All have as many tokens.
    std::span<const Hypothesis> running() const { return running_; }
    int n_steps() const { return n_steps_; }
    bool done() const { return done_; }
    // The best first.
    std::span<const Ended> ended() const { return ended_; }

    // Goes on by a token. What follows the running hypotheses must be known.
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

// Adds the extensions of a hypothesis that are known; and ranks extensions: the likeliest
// first, of equals the first that was added. (Ids of nodes tell nothing: they depend on what was
// drafted.)
void add_extensions(const Trie& trie, const Hypothesis& hypothesis,
                    std::vector<Extension>& extensions);
void rank(std::vector<Extension>& extensions);

}  // namespace specllama
