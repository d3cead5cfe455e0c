#pragma once

struct llama_context;

// Hidden states of a decode, by functions that libllama exports but declares in src/llama-ext.h
// only, a header of what may still change, which is not installed. It is safe to declare them here
// because specllama runs with the one version of llama-cpp-python that it was built with, which is
// checked at import; and they are looked for first, so that a library without them gives no more
// than `available() == false`. Nothing else here may be called then.
namespace specllama::staging {

bool available();

// Has decodes keep what goes into a layer, of every token of a batch; there must be such a layer.
void keep_layer_input(llama_context* context, int layer);
// [n_tokens][n_embd] of the last decode; valid until the next.
const float* layer_input(llama_context* context, int layer);

// The same for the state that the output is computed from, or that a head passes on: [n_tokens]
// [n_embd_out].
void keep_last_state(llama_context* context);
const float* last_state(llama_context* context);

}  // namespace specllama::staging
