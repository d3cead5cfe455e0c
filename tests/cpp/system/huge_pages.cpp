#include "system/huge_pages.h"

#include "check.h"

#if defined(__linux__)
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

using namespace specllama;

namespace {

constexpr std::size_t kSize = std::size_t{64} << 20;

void* map() {
    return mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Returns whether huge pages are requested for the memory at an address.
bool requested(const void* where) {
    const auto address = reinterpret_cast<std::uintptr_t>(where);
    bool inside = false;
    std::ifstream maps("/proc/self/smaps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long first, last;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
            inside = first <= address && address < last;
        else if (inside && line.starts_with("VmFlags:"))
            return line.find(" hg") != std::string::npos;
    }
    return false;
}

}  // namespace

TEST(huge_pages_are_requested_for_new_memory) {
    void* before = map();
    const HugePages pages;
    void* since = map();
    CHECK(before != MAP_FAILED && since != MAP_FAILED);
    if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) return;  // none here
    pages.request();
    CHECK(requested(static_cast<char*>(since) + kSize / 2));
    CHECK(!requested(static_cast<char*>(before) + kSize / 2));
    munmap(before, kSize);
    munmap(since, kSize);
}

#endif
