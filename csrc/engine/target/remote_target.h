#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/target/target.h"
#include "specllama/verifier.h"

namespace specllama {

// A remote target, reached through a verifier. It has its own sampler, memory and prompt schedule.
// Here, the verified tokens of a sequence count as cached.
class RemoteTarget final : public Target {
 public:
    explicit RemoteTarget(std::shared_ptr<Verifier> verifier);

    DraftLimits limits(DraftLimits wanted) const override;
    DraftLimits limits(const Sequence& sequence, DraftLimits wanted) const override;
    // The median of the last round trips, without the target's decodes.
    double overhead() const override;
    void begin(Sequence& sequence) override;
    void end(Sequence& sequence) override;
    void prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                 std::vector<Decode>& decodes) override;
    // Verifies all drafts at once. An error ends only the sequence that it concerns.
    std::size_t verify(std::span<Verification> drafts, int n_padding,
                       std::vector<Decode>& decodes) override;
    void rewind(Sequence& sequence, int keep) override;
    void restore() override;

 private:
    void observe_trip(double seconds);
    void take(Verification& one, VerifyAnswer& answer);

    std::shared_ptr<Verifier> verifier_;
    std::vector<Sequence*> entered_;  // begun and not ended
    std::deque<double> trips_;        // seconds, the latest last
    double overhead_ = 0;
    // Kept between rounds so that few allocate.
    std::vector<SequenceId> reading_;  // sequences in their prompts
    std::vector<RequestDraft> drafts_;
    std::vector<VerifyRequest> requests_;
};

}  // namespace specllama
