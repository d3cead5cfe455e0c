#include "system/huge_pages.h"

#if defined(__linux__)
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#endif

namespace specllama {

HugePages::HugePages() : before_(large()) {}

#if defined(__linux__)

// New memory may have merged with adjacent old memory into one mapping. Both lists are sorted by
// address.
void HugePages::request() const {
    const auto ask = [](std::uintptr_t first, std::uintptr_t last) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the addresses are read from a file
        if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
    };
    for (auto [first, last] : large()) {
        for (const auto& [old_first, old_last] : before_) {
            if (old_last <= first || old_first >= last) continue;
            ask(first, old_first);
            first = old_last;
        }
        ask(first, last);
    }
}

std::vector<HugePages::Range> HugePages::large() {
    constexpr std::uintptr_t kLeast = std::uintptr_t{8} << 20;
    std::vector<Range> ranges;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        Range range;
        char access[5];
        unsigned long inode;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &range.first,
                        &range.second, access, &inode) != 4)
            continue;
        if (inode == 0 && std::string(access) == "rw-p" && range.second - range.first >= kLeast)
            ranges.push_back(range);
    }
    return ranges;
}

#else

void HugePages::request() const {}

std::vector<HugePages::Range> HugePages::large() { return {}; }

#endif

}  // namespace specllama
