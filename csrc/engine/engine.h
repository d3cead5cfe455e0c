#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "engine/sequence.h"
#include "llama/context.h"
#include "specllama/types.h"

namespace specllama {

// The round loop: draft, verify all in one target decode, accept, rewind; for any number of
// sequences at once.
//
// A drafter that fails never ends a generation: its error is recorded and the round goes plain.
class Engine {
 public:
    // A null drafter means plain decoding.
    Engine(Context& target, std::shared_ptr<Drafter> drafter, int spec_length);

    // A sequence enters, with its prompt and a text to draft from, and leaves. Whether it is done
    // or not.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Advances each sequence, none of them done: by a chunk of its prompt while that is longer
    // than its share of a batch, else by a round. After a DecodeError the memory of each holds what
    // n_cached() says.
    void step(std::span<Sequence* const> sequences);

    // Whether rounds may draft at all.
    bool speculates() const { return drafter_ != nullptr; }

 private:
    void prefill(Sequence& sequence);
    void round(std::span<Sequence* const> sequences);
    void draft(std::span<Sequence* const> sequences);
    bool may_draft(const Sequence& sequence) const;
    void decode(std::span<Sequence* const> sequences);
    void verify(Sequence& sequence, const Draft& draft, int row);
    void rewind(Sequence& sequence, int keep);

    Context& target_;
    std::shared_ptr<Drafter> drafter_;
    int spec_length_;
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> ready_;     // for a round
    std::vector<Proposal> proposals_;  // [i] for sequence i of the round
    std::vector<int> rows_;            // [i]: row of the logits after its last committed token
};

}  // namespace specllama
