#pragma once

#include <span>
#include <vector>

#include "engine/sequence.h"
#include "engine/speculator.h"
#include "llama/context.h"
#include "specllama/types.h"

namespace specllama {

// The round loop: draft, verify all in one target decode, accept, rewind; for any number of
// sequences at once.
class Engine {
 public:
    Engine(Context& target, Speculator speculator);

    Speculator& speculator() { return speculator_; }

    // A sequence enters, with its prompt and a text to draft from, and leaves. Whether it is done
    // or not.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Advances the sequences, none of them done: all by a round but those with more of a prompt to
    // decode than their share of a batch. Of these prompts the same batch takes as much as it has
    // room for, in turns; where memory().split(), a batch of its own. So nobody waits for more than
    // a batch of others' prompts.
    //
    // An Error ends those sequences that it concerns; anything else that is thrown ends none. The
    // memory of each then holds what n_cached() says.
    void step(std::span<Sequence* const> sequences);

 private:
    // Sequences [first, last) of a round, which are decoded at once.
    struct Group {
        std::size_t first;
        std::size_t last;
    };

    bool must_prefill(const Sequence& sequence) const;
    void prefill();
    void add_prompts();
    void prompts_decoded(double seconds);
    void fail_prompts();
    void round(std::span<Sequence* const> sequences);
    void draft(std::span<Sequence* const> sequences);
    bool may_draft(const Sequence& sequence) const;
    int n_rows(std::size_t i, const Sequence& sequence) const;
    std::size_t end_of_group(std::span<Sequence* const> sequences, std::size_t first) const;
    void decode_and_verify(std::span<Sequence* const> sequences, Group group);
    double decode(std::span<Sequence* const> sequences, Group group);
    void observe_decode(std::span<Sequence* const> sequences, Group group, double seconds);
    void verify(std::size_t i, Sequence& sequence, double seconds);
    void rewind(Sequence& sequence, int keep);
    void fail(Sequence& sequence);

    Context& target_;
    Speculator speculator_;
    int share_ = 0;              // tokens of a batch that each sequence of a step may have
    SequenceId prefilled_ = -1;  // last
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> in_prompt_;  // whose prompts are to be decoded
    std::vector<int> chunks_;           // [i]: tokens of in_prompt_[i] in the batch
    std::vector<Sequence*> ready_;      // for a round
    std::vector<int> limits_;           // [i]: most tokens to draft for sequence i of the round
    std::vector<int> rows_;             // [i]: row of the logits after its last committed token
};

}  // namespace specllama
