#include "system/huge_pages.h"

#include <algorithm>

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

void HugePages::request() const {
    for (const Range& range : large())
        if (std::ranges::find(before_, range) == before_.end())
            madvise(reinterpret_cast<void*>(range.first), range.second - range.first,
                    MADV_HUGEPAGE);
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
