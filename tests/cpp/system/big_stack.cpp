#include "system/big_stack.h"

#include <cstddef>
#include <stdexcept>

#include "check.h"

using namespace specllama;

namespace {

// Recurses n levels deep, with memory on the stack at each level.
std::size_t levels(std::size_t n) {
    volatile char here[512];
    here[0] = 1;
    return n == 0 ? 0 : levels(n - 1) + static_cast<std::size_t>(here[0]);
}

}  // namespace

TEST(a_stack_has_the_requested_size) {
    constexpr std::size_t kDeep = 100'000;  // 50 MB or more; threads have 8
    std::size_t reached = 0;
    with_stack(kDeep * 1024, [&] { reached = levels(kDeep); });
    CHECK(reached == kDeep);
}

TEST(exceptions_on_the_big_stack_reach_the_caller) {
    CHECK_THROWS(std::invalid_argument,
                 with_stack(1 << 20, [] { throw std::invalid_argument("x"); }));
}
