// Writes down how many tokens each decode has. To be loaded with global symbols, before the
// extension: it stands before llama_decode.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <llama.h>

int n_decodes = 0;
int widths[1 << 16];  // of the first decodes, as many as there is room for

typedef int32_t (*decode_function)(struct llama_context*, struct llama_batch);

int32_t llama_decode(struct llama_context* context, struct llama_batch batch) {
    void* const libllama = dlopen("libllama.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (n_decodes < (int)(sizeof(widths) / sizeof(widths[0]))) widths[n_decodes++] = batch.n_tokens;
    return ((decode_function)dlsym(libllama, "llama_decode"))(context, batch);
}
