#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "draft/corpus.h"
#include "specllama/drafter.h"

namespace specllama {

// Drafts what followed the longest match of a sequence's end in a corpus. Whether that is worth
// more than what the sequence itself offers is for the planner to learn: at the same length it is
// right less often.
class CorpusDrafter final : public Drafter {
 public:
    // vocabulary: Vocab::text_fingerprint of the model's. Throws InvalidArgument when the file is
    // no corpus of that vocabulary; see Corpus.
    CorpusDrafter(const std::string& path, std::uint64_t vocabulary);

    void propose(std::span<Proposal> proposals) override;

 private:
    TokenSpan with_draft(const Proposal& proposal);

    Corpus corpus_;
    std::vector<Token> text_;
};

}  // namespace specllama
