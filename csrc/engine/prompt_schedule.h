#pragma once

#include <span>
#include <vector>

#include "engine/sequence.h"
#include "runtime/context.h"

namespace specllama {

// Which prompt tokens are decoded when.
//
// A prompt that is too long for a round is decoded in batches of prompt tokens only, one before
// each round. The prompts take turns in them and share them, unless the memory is split by
// sequences: then a batch holds one prompt. The end of each prompt, its tail, is decoded with the
// drafts of a round ("piggyback"), which reads its logits. So no sequence waits for more than one
// batch of others' prompts.
class PromptSchedule {
 public:
    // target must outlive this.
    explicit PromptSchedule(Context& target) : target_(target) {}

    // Begins a round of these sequences.
    void begin(std::span<Sequence* const> sequences);
    // Tokens of a decode that each sequence of the round may have.
    int tokens_per_sequence() const { return tokens_per_sequence_; }
    // Whether a sequence has more to decode than a round takes.
    bool must_prefill(const Sequence& sequence) const;
    // Tokens of a prompt that are left for the round that reads its logits.
    int n_tail(const Sequence& sequence) const;
    // Sets where the states of a new sequence's prompt are saved, for later requests that begin
    // alike: at ends of messages, and near the prompt's end.
    void place_checkpoints(Sequence& sequence) const;
    // Whether the memory holds just as much of a prompt as is to be saved.
    bool at_checkpoint(const Sequence& sequence) const;

    // Reduces `prompts` to those of the next batch, in the order of their turns, and sets
    // chunks[i]: how many tokens of prompts[i] it takes. If an image or a sound comes next in the
    // first prompt (at_media), that is all of the batch.
    void choose(std::vector<Sequence*>& prompts, std::vector<int>& chunks);
    static bool at_media(const Sequence& sequence);

 private:
    void set_tails(std::span<Sequence* const> sequences);
    bool is_saved(const Sequence& sequence) const;
    int next_stop(const Sequence& sequence) const;

    Context& target_;
    int tokens_per_sequence_ = 0;
    // A prompt with at most most_tail_ tokens left needs no batch of prompt tokens; others leave
    // tail_ tokens. Saved prompts do not go by these.
    int most_tail_ = 0;
    int tail_ = 0;
    SequenceId last_ = -1;  // the last that was in a batch
};

}  // namespace specllama
