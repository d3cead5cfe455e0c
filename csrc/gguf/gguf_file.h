#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"
#include "gguf/architectures.h"
#include "gguf/rotation.h"
#include "gguf/weights.h"

namespace specllama {

// A weight matrix, or a stack of them: n_slices matrices, one for each expert or head.
struct Matrix {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    std::int64_t n_in = 0;
    std::int64_t n_out = 0;
    std::int64_t n_slices = 1;
    bool of_experts = false;  // one slice per expert
    bool recurrent = false;   // in a recurrent layer, but not in its feed-forward part
    std::uint64_t n_bytes() const;
};

// What must be known from the header of a model file before the file is loaded.
struct Header {
    std::string path;
    std::string architecture;
    Architecture traits;
    // Whether the file has layers of multi-token prediction, but not the layers before them, so it
    // can only draft for another model.
    bool is_prediction = false;
    // Matrices that activations are multiplied with; not tables that rows are taken from.
    std::vector<Matrix> matrices;
    // Attention heads of a layer, and the numbers of one head; 0: no attention, or a number of
    // heads per layer.
    int n_heads = 0;
    int head_size = 0;
    bool has_sliding_window = false;  // whether there are sliding windows
    // Whether positions are rotated differently in long contexts than in short ones.
    bool long_rope = false;
    Rotation rotation;
    int n_ctx_train = 0;
    Weights weights;
    // What each layer keeps of texts. Those of multi-token prediction, the last ones of `weights`,
    // are not among them.
    struct Layer {
        double kv_numbers = 0;      // of each token
        double window_numbers = 0;  // of each token that a sliding window reaches
        double state_numbers = 0;   // of a recurrent state, for each sequence
    };
    std::vector<Layer> layers;
    int n_window = 0;  // tokens that sliding windows reach back
    // Whether llama.cpp takes keys and values of one type only: with latent attention, values are a
    // part of the keys.
    bool one_kv_type = false;
    // Roughly, the numbers that exist at once while one token is computed.
    double compute_numbers_per_token = 0;
    int n_vocab = 0;
    int width = 0;  // of a token's state between two layers
    // The part of its experts that a token uses.
    double expert_share = 1;
    // Length of the target's states that a head reads; 0: the file is no head.
    int target_width = 0;
    // Whether a head has no output of its own, so it uses its target's.
    bool shares_output = false;

    // Whether the file only drafts, from what its target computes.
    bool is_head() const { return is_prediction || traits.is_head(); }
    // What such a file is, e.g. "an EAGLE-3 head".
    std::string head_name() const;
};

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a model
// that generates text. Some damaged files would fail an assertion in llama.cpp, which would end the
// process; what it asserts is checked here first.
Header check_gguf(const std::string& path);

}  // namespace specllama
