#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/round.h"
#include "engine/sequence.h"
#include "engine/speculator/speculator.h"
#include "engine/target/target.h"
#include "specllama/types.h"

namespace specllama {

// The round loop: draft, verify, accept, rewind; for any number of sequences at once.
class Engine {
 public:
    Engine(std::unique_ptr<Target> target, std::unique_ptr<Speculator> speculator);

    Speculator& speculator() { return *speculator_; }
    // Maximum number of tokens of a draft for a sequence alone in a round.
    DraftLimits limits() const;

    // A sequence enters with its prompt, and leaves, done or not. It must live until it has left.
    // reference: a text to draft from.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Advances sequences that are not done by a round, except those whose prompts are too long for
    // one (see PromptSchedule).
    //
    // An Error ends only the sequences that it concerns. Any other exception is passed on and ends
    // none. In both cases the target then holds n_cached() tokens of each.
    void step(std::span<Sequence* const> sequences);

 private:
    void propose(Round& round);
    bool verify(Round& round);
    void accept(Round& round);
    void rewind(Round& round);
    void commit(Round& round);
    void commit_forced(Sequence& sequence);
    void observe_decodes(Round& round);
    // Calls a function with the index of each sequence in `round` that was verified last.
    template <typename Function>
    void for_each_verified(Round& round, Function function);

    std::unique_ptr<Target> target_;
    std::unique_ptr<Speculator> speculator_;
    Round round_;
};

}  // namespace specllama
