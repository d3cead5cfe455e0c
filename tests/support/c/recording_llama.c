// Records the number of tokens and the context of each decode. Load it with global symbols before
// the extension: it replaces llama_decode.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <llama.h>

enum { kMost = 1 << 16 };  // most recorded decodes

int n_decodes = 0;
int widths[kMost];
const void* contexts[kMost];

typedef int32_t (*decode_function)(struct llama_context*, struct llama_batch);

int32_t llama_decode(struct llama_context* context, struct llama_batch batch) {
    void* const libllama = dlopen("libllama.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (n_decodes < kMost) {
        contexts[n_decodes] = context;
        widths[n_decodes++] = batch.n_tokens;
    }
    return ((decode_function)dlsym(libllama, "llama_decode"))(context, batch);
}
