#include "runtime/helper_threads.h"

#include <atomic>
#include <thread>

#if defined(__linux__)
// From the OpenMP runtime of llama.cpp's kernels; null: it lacks this function of OpenMP 5.0, or
// there is no runtime.
extern "C" [[gnu::weak]] int omp_pause_resource_all(int kind);
#endif

namespace specllama {

namespace {

// Since a session was last opened or closed: the first thread that decoded, and whether others did,
// too.
std::atomic<std::thread::id> first;
std::atomic<bool> others = false;

void release() {
#if defined(__linux__)
    constexpr int kSoft = 1;  // omp_pause_soft
    if (omp_pause_resource_all != nullptr) omp_pause_resource_all(kSoft);
#endif
}

}  // namespace

void release_helper_threads() {
    first = std::thread::id();
    others = false;
    release();
}

void rest_helper_threads() {
    std::thread::id who;
    if (!first.compare_exchange_strong(who, std::this_thread::get_id()) &&
        who != std::this_thread::get_id())
        others = true;
    if (others) release();
}

}  // namespace specllama
