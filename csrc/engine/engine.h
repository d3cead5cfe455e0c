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

    // Advances each sequence, none of them done: by a chunk of its prompt while that is longer
    // than its share of a batch, else by a round. After a DecodeError the memory of each holds what
    // n_cached() says.
    void step(std::span<Sequence* const> sequences);

 private:
    void prefill(Sequence& sequence);
    void round(std::span<Sequence* const> sequences);
    void draft(std::span<Sequence* const> sequences);
    bool may_draft(const Sequence& sequence) const;
    double decode(std::span<Sequence* const> sequences);
    void verify(std::size_t i, Sequence& sequence, double seconds);
    void rewind(Sequence& sequence, int keep);

    Context& target_;
    Speculator speculator_;
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> ready_;  // for a round
    std::vector<int> limits_;       // [i]: most tokens to draft for sequence i of the round
    std::vector<int> rows_;         // [i]: row of the logits after its last committed token
};

}  // namespace specllama
