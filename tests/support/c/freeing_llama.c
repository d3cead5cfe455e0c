// Counts the freed models, and those freed while the GIL is held. Load it with global symbols
// before the extension: it replaces llama_model_free.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <llama.h>

int n_freed = 0;
int n_freed_with_gil = 0;

int PyGILState_Check(void);

typedef void (*free_function)(struct llama_model*);

void llama_model_free(struct llama_model* model) {
    void* const libllama = dlopen("libllama.so.0", RTLD_NOW | RTLD_NOLOAD);
    ++n_freed;
    n_freed_with_gil += PyGILState_Check();
    ((free_function)dlsym(libllama, "llama_model_free"))(model);
}
