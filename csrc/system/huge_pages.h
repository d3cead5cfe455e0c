#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace specllama {

// All weights are read for each token. This is faster with pages of 2 MB, since fewer page lookups
// are needed. Many Linux systems provide such pages only on request ("madvise" in
// /sys/kernel/mm/transparent_hugepage/enabled). On other systems this class has no effect.
class HugePages {
 public:
    // Records the large memory areas of the process.
    HugePages();
    // Requests huge pages for all large areas allocated since then, except mapped files. Must be
    // called before they are written to: memory that already has pages keeps them.
    void request() const;

 private:
    using Range = std::pair<std::uintptr_t, std::uintptr_t>;

    static std::vector<Range> large();

    std::vector<Range> before_;
};

}  // namespace specllama
