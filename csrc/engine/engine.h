#pragma once

#include <span>
#include <vector>

#include "engine/sequence.h"
#include "engine/speculator.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "specllama/types.h"

namespace specllama {

// The round loop: draft, verify all in one target decode, accept, rewind; for any number of
// sequences at once.
class Engine {
 public:
    Engine(Context& target, Speculator speculator);

    Speculator& speculator() { return speculator_; }
    // Most tokens in a row of a draft, for a sequence that has a batch to itself.
    int longest_draft() const;
    // Most tokens of a draft, those of branches included.
    int most_nodes() const;

    // A sequence enters with its prompt, and leaves, done or not; it must live until then.
    // reference: a text to draft from.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Advances sequences that are not done. If some prompts are too long for a round (see Ride),
    // one batch of prompt tokens is decoded first. Prompts take turns in it and share it, unless
    // memory().split(): then it holds only one. A round follows for all other sequences, and for
    // those with only so many prompt tokens left as may ride in it. So no sequence waits for more
    // than one batch of others' prompts.
    //
    // An Error ends only the sequences that it concerns: if a decode of several fails, those whose
    // own decode fails as well; if the memory cannot be cut, also those whose state is lost. Any
    // other exception is passed on and ends none. In either case the memory holds n_cached() tokens
    // of each afterwards.
    void step(std::span<Sequence* const> sequences);

 private:
    // Sequences [first, last) of a prefill or a round, which are decoded at once.
    struct Group {
        std::size_t first;
        std::size_t last;
    };

    // What of a prompt is decoded in the round that reads its logits, for each prompt of a step
    // that is not marked (see is_marked).
    struct Ride {
        int most;  // a prompt with at most so many tokens left needs no prompt batch
        int rest;  // the last tokens that prompt batches leave for the round
    };

    Ride ride(std::span<Sequence* const> sequences) const;
    bool must_prefill(const Sequence& sequence) const;
    bool is_marked(const Sequence& sequence) const;
    int n_left(const Sequence& sequence) const;
    template <typename Decode>
    void attempt(std::span<Sequence* const> sequences, Group group, Decode decode);
    void recover(const Sequence* alone);
    void prefill();
    void decode_chunks(Group group);
    void round();
    void draft();
    bool may_draft(const Sequence& sequence) const;
    std::size_t end_of_group(std::size_t first) const;
    double verify(Group group);
    void accept(Group group, double seconds);
    void accept(std::size_t i, Sequence& sequence, double seconds);
    Token walk(std::size_t i, Sequence& sequence);
    void commit_forced(Sequence& sequence);
    void rewind(Sequence& sequence, int keep);

    Context& target_;
    Speculator speculator_;
    std::vector<Sequence*> entered_;  // begun and not ended
    int quota_ = 0;                   // tokens of a batch that each sequence of the step may have
    Ride ride_{};
    SequenceId prefilled_ = -1;  // the last that was in a prefill
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> in_prompt_;  // those whose prompts are to be decoded
    std::vector<int> chunks_;           // [i]: tokens of in_prompt_[i] in the batch
    std::vector<Sequence*> ready_;      // those that do a round
    std::vector<Limit> limits_;         // [i]: what to draft for sequence i of the round
    std::vector<int> rows_;             // [i]: row of the logits after its last committed token
    std::vector<Guess> guesses_;        // at the position being verified
    std::vector<int> path_;             // accepted nodes of a draft
    std::vector<Token> heard_;          // tokens that the target has said of it
};

}  // namespace specllama
