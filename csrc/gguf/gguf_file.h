#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ggml.h"
#include "gguf/architecture/architectures.h"
#include "gguf/architecture/weights.h"
#include "llama.h"

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

// What a model file states of how positions turn the numbers of its attention heads (RoPE).
struct Rotation {
    std::int64_t head_size = 0;  // numbers of a head; 0: there is no attention
    // How many numbers of a head are turned. Where layers with sliding windows have a count of
    // their own, it is the lower one. None: not stated, all are.
    std::optional<std::int64_t> n_turned;
    // How many pairs of numbers each of the four positions of a token turns, in models that have
    // so many; empty: not stated.
    std::vector<std::int64_t> sections;
};

// What must be known from the header of a model file before the file is loaded.
struct Header {
    std::string path;
    std::vector<std::string> files;  // see GgufReader::files
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

// Why llama.cpp cannot turn heads that way, as the rest of a sentence about the file; "": it can.
// type: what llama_model_rope_type tells of the model.
std::string rotation_fault(const Rotation& rotation, llama_rope_type type);

}  // namespace specllama
