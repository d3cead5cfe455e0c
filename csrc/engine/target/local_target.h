#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft/head/state_reader.h"
#include "engine/prompt_schedule.h"
#include "engine/target/target.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "vision/vision.h"

namespace specllama {

// A model in this process: its context decodes, and each request's sampler chooses.
class LocalTarget final : public Target {
 public:
    // context must outlive this. reader: a drafter that reads the hidden states of all decoded
    // tokens, which the context keeps from now on; null: none. vision: decodes images and sounds;
    // null: sequences have none. Throws what StateReader::attach throws.
    explicit LocalTarget(Context& context, std::shared_ptr<StateReader> reader = nullptr,
                         std::shared_ptr<Vision> vision = nullptr);

    DraftLimits limits(DraftLimits wanted) const override;
    DraftLimits limits(const Sequence& sequence, DraftLimits wanted) const override;
    void begin(Sequence& sequence) override;
    void end(Sequence& sequence) override;
    void prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                 std::vector<Decode>& decodes) override;
    // If a decode of several sequences fails, they are decoded one by one. Sequences whose own
    // decode fails end; if the memory cannot be cut, sequences whose state is lost end, too.
    std::size_t verify(std::span<Verification> drafts, int n_padding,
                       std::vector<Decode>& decodes) override;
    void rewind(Sequence& sequence, int keep) override;
    void restore() override;

 private:
    void decode_apart(std::size_t first, std::size_t last, std::vector<Decode>& decodes);
    void decode_prompts(std::size_t first, std::size_t last, std::vector<Decode>& decodes);
    void decode_media(Sequence& sequence);
    void prefilled(Sequence& sequence, int n, double seconds);
    std::size_t n_together(std::span<const Verification> drafts) const;
    void decode_drafts(std::span<Verification> drafts, int n_padding, std::vector<Decode>& decodes);
    int add_draft(const Verification& one);
    void walk(Verification& one, int row);
    void recover(const Sequence* alone);
    void process(Sequence& sequence, int row, int n, std::span<const int> path);

    Context& context_;
    std::shared_ptr<StateReader> reader_;
    std::shared_ptr<Vision> vision_;
    PromptSchedule schedule_;
    std::vector<Sequence*> entered_;  // begun and not ended
    std::size_t n_alone_ = 0;         // sequences to be decoded one by one, because a decode failed
    // Kept between rounds so that none allocates.
    Batch batch_;
    std::vector<Sequence*> prompts_;  // of a batch of prompt tokens
    std::vector<int> chunks_;         // [i]: tokens of prompts_[i] in it
    std::vector<int> rows_;           // [i]: row of the logits after the last committed token
    std::vector<Guess> candidates_;   // at the position being verified
    std::vector<int> stay_;           // rows of a decode whose tokens stay
};

}  // namespace specllama
