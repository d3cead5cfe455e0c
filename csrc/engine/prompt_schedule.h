#pragma once

#include <span>
#include <vector>

#include "engine/sequence.h"
#include "runtime/context.h"

namespace specllama {

// Decides when prompt tokens are decoded.
//
// A prompt that is too long for a round is decoded in batches of prompt tokens only, one before
// each round. The prompts take turns and share these batches. If the memory has per-sequence
// streams, each prompt of a batch has its own decode. The end of each prompt, its tail, is decoded
// with the drafts of a round ("piggyback"), which reads its logits. So no sequence waits for more
// than one batch of others' prompts.
class PromptSchedule {
 public:
    // target must outlive this.
    explicit PromptSchedule(Context& target) : target_(target) {}

    // Begins a round of these sequences.
    void begin(std::span<Sequence* const> sequences);
    // Maximum number of tokens per sequence in a decode of the round.
    int tokens_per_sequence() const { return tokens_per_sequence_; }
    // Whether a sequence has more tokens to decode than fit into a round.
    bool must_prefill(const Sequence& sequence) const;
    // Tokens of a prompt left for the round that reads its logits.
    int n_tail(const Sequence& sequence) const;
    // Sets the positions at which states of a new sequence's prompt are saved, for later requests
    // with the same beginning: at ends of messages, and near the prompt's end.
    void place_checkpoints(Sequence& sequence) const;
    // Whether the memory holds a prompt up to a position that is to be saved.
    bool at_checkpoint(const Sequence& sequence) const;

    // Reduces `prompts` to those of the next batch, in the order of their turns, and sets chunks[i]
    // to the number of tokens of prompts[i] in it. If an image or a sound comes next in the first
    // prompt (at_media), the batch holds nothing else.
    void choose(std::vector<Sequence*>& prompts, std::vector<int>& chunks);
    static bool at_media(const Sequence& sequence);

 private:
    void set_tails(std::span<Sequence* const> sequences);
    bool is_saved(const Sequence& sequence) const;
    int next_stop(const Sequence& sequence) const;

    Context& target_;
    int tokens_per_sequence_ = 0;
    // A prompt with at most most_tail_ tokens left needs no batch of prompt tokens; others leave
    // tail_ tokens. Neither applies to saved prompts.
    int most_tail_ = 0;
    int tail_ = 0;
    SequenceId last_ = -1;  // the last one in a batch
};

}  // namespace specllama
