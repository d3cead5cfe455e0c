#pragma once

// Put before a function: it is compiled once for any processor, and again for each named kind of
// processor. The best version is chosen when the program is loaded. (Not with sanitizers, since the
// choice is made before they are initialised.)
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPECLLAMA_CLONES(...) __attribute__((target_clones("default", __VA_ARGS__)))
#else
#define SPECLLAMA_CLONES(...)
#endif
