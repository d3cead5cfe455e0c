#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace specllama {

enum class FlashAttention { automatic, on, off };

struct ModelOptions {
    // Path of a GGUF file; of the first part when the model is split.
    std::string path;
    // Layers kept on the GPU; -1: all that fit; 0: no device is used at all.
    int n_gpu_layers = -1;
};

struct ContextOptions {
    // Tokens of prompt and generation together; 0: the smaller of the trained context and 8192.
    int n_ctx = 0;
    // Largest number of tokens decoded at once, 1 to 8192; also the chunk of a prefill.
    int n_batch = 512;
    // 0: one per performance core.
    int n_threads = 0;
    FlashAttention flash_attn = FlashAttention::automatic;
    // Type of the KV memory: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl.
    std::string kv_type = "f16";
};

// Options of the n-gram predictor.
struct NGramOptions {
    // Longest n-gram, 2 to 8: contexts are up to max_order - 1 tokens.
    int max_order = 4;
    // Only counts of the last `window` tokens are kept; 0: nothing is forgotten.
    int window = 0;
    // Bound on the memory of the tables, in bytes; the oldest contexts go first.
    std::size_t max_bytes = std::size_t{64} << 20;
};

// Called with the fraction done, 0 to 1. Returning false cancels with Interrupted; what it throws
// is passed on.
using ProgressFunction = std::function<bool(float)>;

struct SessionOptions {
    ModelOptions model;
    ContextOptions context;
    // Most tokens drafted per round, 1 to kMaxSpecLength.
    int spec_length = 4;
    ProgressFunction load_progress;
};

struct GenerateOptions {
    // Most tokens to generate; -1: until the context is full.
    int max_tokens = 256;
    // The text ends before the first of these; none may be empty.
    std::vector<std::string> stop;
};

}  // namespace specllama
