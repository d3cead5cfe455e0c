// A machine with little memory: replaces /proc/meminfo by the file in LITTLE_MEMORY, if it exists.
// Preload it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef FILE* (*open_function)(const char*, const char*);

static const char* stand_in(const char* path) {
    const char* const other = getenv("LITTLE_MEMORY");
    const int is_asked = strcmp(path, "/proc/meminfo") == 0 && other != NULL;
    return is_asked && access(other, R_OK) == 0 ? other : path;
}

FILE* fopen(const char* path, const char* mode) {
    return ((open_function)dlsym(RTLD_NEXT, "fopen"))(stand_in(path), mode);
}

FILE* fopen64(const char* path, const char* mode) {
    return ((open_function)dlsym(RTLD_NEXT, "fopen64"))(stand_in(path), mode);
}
