#include "llama/helper_threads.h"

#if defined(__linux__)
// Of the runtime that llama.cpp's kernels were built with; null where that is none. (OpenMP 5.0.)
extern "C" [[gnu::weak]] int omp_pause_resource_all(int kind);
#endif

namespace specllama {

void release_helper_threads() {
#if defined(__linux__)
    constexpr int kSoft = 1;  // omp_pause_soft
    if (omp_pause_resource_all != nullptr) omp_pause_resource_all(kSoft);
#endif
}

}  // namespace specllama
