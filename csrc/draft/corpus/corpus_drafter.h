#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "draft/core_drafter.h"
#include "draft/corpus/corpus.h"

namespace specllama {

// Drafts the continuation of the longest match in a corpus. At the same length, such a match is
// right less often than a match in the sequence itself; the planner learns both rates.
class CorpusDrafter final : public CoreDrafter {
 public:
    // vocabulary: Vocab::text_fingerprint of the model's vocabulary. Throws InvalidArgument when
    // the file is not a corpus of that vocabulary (see Corpus).
    CorpusDrafter(const std::string& path, std::uint64_t vocabulary);

    void propose(std::span<DraftRequest> proposals) override;

 private:
    Corpus corpus_;
    std::vector<Token> text_;
};

}  // namespace specllama
