#pragma once

struct llama_context;

// Hidden states of a decode. libllama exports functions for them, but declares them only in
// src/llama-ext.h, a header for unstable functions, which is not installed. Declaring them here is
// safe, because specllama runs only with the version of llama-cpp-python that it was built with,
// which is checked at import. If a library lacks them, available() is false, and nothing else here
// may be called.
namespace specllama::hidden_states {

bool available();

// Makes later decodes keep the input of a layer for every token of a batch. The layer must exist.
void keep_layer_input(llama_context* context, int layer);
// [n_tokens][n_embd] of the last decode; valid until the next one.
const float* layer_input(llama_context* context, int layer);

// The same for the state from which the output is computed, or which a head passes on: of all
// tokens, or only of those that request logits.
void keep_last_state(llama_context* context, bool wanted_only);
// [n_tokens][n_embd_out], if states of all tokens are kept.
const float* last_state(llama_context* context);
// [n_embd_out] of a row of the batch; null: its state was not kept.
const float* last_state(llama_context* context, int row);

// Selects the layer of multi-token prediction that decodes compute.
void select_prediction_layer(llama_context* context, int layer);

}  // namespace specllama::hidden_states
