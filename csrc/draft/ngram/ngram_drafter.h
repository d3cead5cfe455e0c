#pragma once

#include <map>
#include <span>

#include "draft/core_drafter.h"
#include "draft/ngram/ngram_follower.h"
#include "specllama/ngram_options.h"

namespace specllama {

// Drafts for each sequence with its own NGramFollower, which is deleted at the end of the request.
class NGramDrafter final : public CoreDrafter {
 public:
    // Throws InvalidArgument when an option is out of range.
    explicit NGramDrafter(const NGramOptions& options);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<DraftRequest> proposals) override;
    void end(SequenceId sequence) override;

 private:
    NGramOptions options_;
    std::map<SequenceId, NGramFollower> followers_;
};

}  // namespace specllama
