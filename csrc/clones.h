#pragma once

// Before a function: compiled once for every processor, and once more for each of these kinds of
// them; the best is taken when it is loaded. (Resolved before a sanitizer is ready for it.)
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPECLLAMA_CLONES(...) __attribute__((target_clones("default", __VA_ARGS__)))
#else
#define SPECLLAMA_CLONES(...)
#endif
