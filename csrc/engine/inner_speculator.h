#pragma once

#include <cstdint>
#include <map>

#include "draft/guesser.h"
#include "plan/planner.h"
#include "specllama/drafter.h"
#include "specllama/types.h"

namespace specllama {

// Speculates for the draft model with a drafter that costs no time, as far as a planner of its own
// expects it to pay: what the draft model's decodes take, and how often it agrees with the drafter,
// is another matter than with the target.
class InnerSpeculator final : public Guesser {
 public:
    // drafter: whose drafts are the guesses; null: nobody guesses. Must outlive this; its begin and
    // end are not called from here.
    explicit InnerSpeculator(Drafter* drafter) : drafter_(drafter) {}

    // A sequence enters, and leaves.
    void begin(SequenceId sequence, double temperature, int n_prompt) {
        phases_[sequence] = planner_.begin(temperature, n_prompt);
    }
    void end(SequenceId sequence) { phases_.erase(sequence); }

    TokenSpan guess(const Proposal& proposal, int n_pending, int n_most) override;
    void observe(const Proposal& proposal, double seconds) override;

    // v(n) of the draft model.
    CostCurve& cost() { return planner_.cost(); }

    // Tokens that were decoded as guesses, and those of them that became the draft.
    std::int64_t n_guessed() const { return n_guessed_; }
    std::int64_t n_right() const { return n_right_; }

 private:
    Drafter* drafter_;
    Planner planner_;
    std::map<SequenceId, Phase> phases_;
    // Of the last guess: the drafter's proposal, with the draft before it, and what was made of it.
    Proposal own_;
    Turn turn_;
    std::int64_t n_guessed_ = 0;
    std::int64_t n_right_ = 0;
};

}  // namespace specllama
