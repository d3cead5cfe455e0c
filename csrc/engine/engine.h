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
    // Most tokens of a draft, for a sequence that has a batch to itself.
    int longest_draft() const;
    // Most tokens of one, those of branches included.
    int most_nodes() const;

    // A sequence enters, with its prompt and a text to draft from, and leaves, whether it is done
    // or not; it must live until then.
    void begin(Sequence& sequence, TokenSpan reference);
    void end(Sequence& sequence);

    // Advances sequences that are not done. Of prompts longer than a sequence's quota of a batch
    // one batch is decoded first, filled from as many of them as it has room for, in turns; from
    // one where memory().split(). A round follows for all others, and for those that have but one
    // token of their prompt left. So nobody waits for more than one batch of others' prompts.
    //
    // An Error ends those sequences that it concerns: where a decode for several fails, those whose
    // own decode fails, too; where the memory cannot be cut, those whose state is lost. Anything
    // else that is thrown ends none. The memory of each then holds what n_cached() says.
    void step(std::span<Sequence* const> sequences);

 private:
    // Sequences [first, last) of a prefill or a round, which are decoded at once.
    struct Group {
        std::size_t first;
        std::size_t last;
    };

    bool must_prefill(const Sequence& sequence) const;
    template <typename Decode>
    void attempt(std::span<Sequence* const> sequences, Group group, Decode decode);
    void recover(const Sequence* alone);
    void prefill();
    void take_chunks();
    void decode_chunks(Group group);
    void round();
    void draft();
    bool may_draft(const Sequence& sequence) const;
    int n_rows(std::size_t i) const;
    std::size_t end_of_group(std::size_t first) const;
    double decode(Group group);
    int pad(Group group, int n_context);
    void verify(Group group, double seconds);
    void verify(std::size_t i, Sequence& sequence, double seconds);
    void absorb(Sequence& sequence, Position first, int row, int n, std::span<const int> path);
    void commit_certain(Sequence& sequence);
    void rewind(Sequence& sequence, int keep);

    Context& target_;
    Speculator speculator_;
    std::vector<Sequence*> entered_;  // that have begun and not ended
    int quota_ = 0;                   // tokens of a batch that each of them may have
    SequenceId prefilled_ = -1;       // last
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> in_prompt_;  // whose prompts are to be decoded
    std::vector<int> chunks_;           // [i]: tokens of in_prompt_[i] in the batch
    std::vector<Sequence*> ready_;      // for a round
    std::vector<Limit> limits_;         // [i]: what to draft for sequence i of the round
    std::vector<int> rows_;             // [i]: row of the logits after its last committed token
    std::vector<Guess> guesses_;        // at the position that is verified
    std::vector<int> path_;             // nodes of the draft that were accepted
    std::vector<int> stay_;             // rows of tokens that stay
};

}  // namespace specllama
