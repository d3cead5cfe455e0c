#pragma once

#include <span>

#include "draft/core_drafter.h"

namespace specllama {

// Drafts nothing. A session whose requests bring their drafts, and that has no drafter of its own,
// is laid out for verifying by this one.
class NoDrafter final : public CoreDrafter {
 public:
    void propose(std::span<DraftRequest>) override {}
};

}  // namespace specllama
