#include "llama/hidden_states.h"

#include <cstdint>

// Declared as in src/llama-ext.h, with C++ linkage. Weak: null if the library lacks the function.
#define SPECLLAMA_WEAK __attribute__((weak))
SPECLLAMA_WEAK void llama_set_embeddings_layer_inp(llama_context*, std::uint32_t, bool);
SPECLLAMA_WEAK float* llama_get_embeddings_layer_inp(llama_context*, std::uint32_t);
SPECLLAMA_WEAK void llama_set_embeddings_nextn(llama_context*, bool, bool);
SPECLLAMA_WEAK float* llama_get_embeddings_nextn(llama_context*);
#undef SPECLLAMA_WEAK

namespace specllama::hidden_states {

bool available() {
    return llama_set_embeddings_layer_inp != nullptr && llama_get_embeddings_layer_inp != nullptr &&
           llama_set_embeddings_nextn != nullptr && llama_get_embeddings_nextn != nullptr;
}

void keep_layer_input(llama_context* context, int layer) {
    llama_set_embeddings_layer_inp(context, static_cast<std::uint32_t>(layer), true);
}

const float* layer_input(llama_context* context, int layer) {
    return llama_get_embeddings_layer_inp(context, static_cast<std::uint32_t>(layer));
}

// Not masked: states of all tokens are kept, whether their logits are wanted or not.
void keep_last_state(llama_context* context) { llama_set_embeddings_nextn(context, true, false); }

const float* last_state(llama_context* context) { return llama_get_embeddings_nextn(context); }

}  // namespace specllama::hidden_states
