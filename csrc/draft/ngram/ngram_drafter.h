#pragma once

#include <map>
#include <span>

#include "draft/ngram/ngram_follower.h"
#include "specllama/drafter.h"
#include "specllama/ngram_drafter.h"

namespace specllama {

// Drafts for each sequence with an NGramFollower, which is forgotten with the request.
class NGramDrafter final : public Drafter {
 public:
    // Throws InvalidArgument when an option is out of range.
    explicit NGramDrafter(const NGramOptions& options);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

 private:
    NGramOptions options_;
    std::map<SequenceId, NGramFollower> followers_;
};

}  // namespace specllama
