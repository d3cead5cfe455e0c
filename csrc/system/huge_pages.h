#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace specllama {

// Weights are read from one end to the other for every token. That is faster from pages of 2 MB,
// since fewer pages must be looked up. Many Linux systems give out such pages only on request
// ("madvise" in /sys/kernel/mm/transparent_hugepage/enabled). On other systems this class changes
// nothing.
class HugePages {
 public:
    // Notes which large areas of memory the process has now.
    HugePages();
    // Requests huge pages for all large areas without a file behind them that were allocated since.
    // To be called before these are written to: memory that has its pages already keeps them.
    void request() const;

 private:
    using Range = std::pair<std::uintptr_t, std::uintptr_t>;

    static std::vector<Range> large();

    std::vector<Range> before_;
};

}  // namespace specllama
