// Aborts chosen decodes half way by llama.cpp's own abort callback. Load it with global symbols
// before the extension: it replaces llama_decode.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <llama.h>

int n_sequences_failing = 0;  // decodes for at least so many sequences are aborted (0: none)
int n_failed = 0;             // number of aborted decodes
int n_only_logged = 0;        // decodes whose failure is only logged, as on a GPU

typedef int32_t (*decode_function)(struct llama_context*, struct llama_batch);
typedef void (*synchronize_function)(struct llama_context*);
typedef void (*log_function)(enum ggml_log_level, const char*, ...);
typedef void (*set_abort_function)(struct llama_context*, ggml_abort_callback, void*);

static int n_nodes_left;

static bool has_enough(void* data) {
    (void)data;
    return n_nodes_left-- <= 0;
}

static int count_sequences(struct llama_batch batch) {
    bool seen[64] = {false};
    int n = 0;
    for (int i = 0; i < batch.n_tokens; ++i) {
        n += !seen[batch.seq_id[i][0]];
        seen[batch.seq_id[i][0]] = true;
    }
    return n;
}

int32_t llama_decode(struct llama_context* context, struct llama_batch batch) {
    void* const libllama = dlopen("libllama.so.0", RTLD_NOW | RTLD_NOLOAD);
    const decode_function decode = (decode_function)dlsym(libllama, "llama_decode");
    const set_abort_function set_abort =
        (set_abort_function)dlsym(libllama, "llama_set_abort_callback");
    if (n_sequences_failing == 0 || count_sequences(batch) < n_sequences_failing)
        return decode(context, batch);
    ++n_failed;
    n_nodes_left = 20;
    set_abort(context, has_enough, NULL);
    const int32_t code = decode(context, batch);
    set_abort(context, NULL, NULL);
    return code;
}

void llama_synchronize(struct llama_context* context) {
    void* const libllama = dlopen("libllama.so.0", RTLD_NOW | RTLD_NOLOAD);
    ((synchronize_function)dlsym(libllama, "llama_synchronize"))(context);
    if (n_only_logged == 0) return;
    --n_only_logged;
    void* const libggml = dlopen("libggml-base.so.0", RTLD_NOW | RTLD_NOLOAD);
    const log_function log = (log_function)dlsym(libggml, "ggml_log_internal");
    log(GGML_LOG_LEVEL_ERROR, "%s: error: command buffer %d failed\n", __func__, 0);
}
