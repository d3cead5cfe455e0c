// A processor with little memory as the device of a llama.cpp RPC server: LITTLE_DEVICE MiB.
// Preload it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef long (*sysconf_function)(int);

long sysconf(int name) {
    const sysconf_function original = (sysconf_function)dlsym(RTLD_NEXT, "sysconf");
    const char* const mebibytes = getenv("LITTLE_DEVICE");
    if (name == _SC_PHYS_PAGES && mebibytes != NULL)
        return atol(mebibytes) * ((1 << 20) / original(_SC_PAGE_SIZE));
    return original(name);
}
