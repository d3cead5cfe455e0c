// A malloc that fails once, in the `fail_in`-th next call for 64 bytes or more, counted from 0
// (negative: never).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int fail_in = -1;

void* malloc(size_t n_bytes) {
    static void* (*next)(size_t);
    if (!next) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
    if (fail_in >= 0 && n_bytes >= 64 && fail_in-- == 0) return NULL;
    return next(n_bytes);
}
