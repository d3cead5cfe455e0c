#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace specllama {

// Memory that is read from one end to the other for every token, as weights are, is read faster
// from pages of 2 MB: there are fewer to look up. Many Linux systems give them only where they are
// asked for ("madvise" in /sys/kernel/mm/transparent_hugepage/enabled). On others this does
// nothing.
class HugePages {
 public:
    // Notes what memory there is.
    HugePages();
    // Asks for them where large memory, with no file behind it, has come since. Before it is
    // written to: what has its pages keeps them.
    void request() const;

 private:
    using Range = std::pair<std::uintptr_t, std::uintptr_t>;

    static std::vector<Range> large();

    std::vector<Range> before_;
};

}  // namespace specllama
