#include "llama/hidden_states.h"

#include <cstdint>

// Declared as in src/llama-ext.h, with C++ linkage. Weak: null if the library lacks the function.
#define SPECLLAMA_WEAK __attribute__((weak))
SPECLLAMA_WEAK void llama_set_embeddings_layer_inp(llama_context*, std::uint32_t, bool);
SPECLLAMA_WEAK float* llama_get_embeddings_layer_inp(llama_context*, std::uint32_t);
SPECLLAMA_WEAK void llama_set_embeddings_nextn(llama_context*, bool, bool);
SPECLLAMA_WEAK float* llama_get_embeddings_nextn(llama_context*);
SPECLLAMA_WEAK float* llama_get_embeddings_nextn_ith(llama_context*, std::int32_t);
SPECLLAMA_WEAK void llama_set_nextn_layer_offset(llama_context*, std::int32_t);
#undef SPECLLAMA_WEAK

namespace specllama::hidden_states {

bool available() {
    return llama_set_embeddings_layer_inp != nullptr && llama_get_embeddings_layer_inp != nullptr &&
           llama_set_embeddings_nextn != nullptr && llama_get_embeddings_nextn != nullptr &&
           llama_get_embeddings_nextn_ith != nullptr && llama_set_nextn_layer_offset != nullptr;
}

void keep_layer_input(llama_context* context, int layer) {
    llama_set_embeddings_layer_inp(context, static_cast<std::uint32_t>(layer), true);
}

const float* layer_input(llama_context* context, int layer) {
    return llama_get_embeddings_layer_inp(context, static_cast<std::uint32_t>(layer));
}

void keep_last_state(llama_context* context, bool wanted_only) {
    llama_set_embeddings_nextn(context, true, wanted_only);
}

const float* last_state(llama_context* context) { return llama_get_embeddings_nextn(context); }

const float* last_state(llama_context* context, int row) {
    return llama_get_embeddings_nextn_ith(context, row);
}

void select_prediction_layer(llama_context* context, int layer) {
    llama_set_nextn_layer_offset(context, layer);
}

}  // namespace specllama::hidden_states
