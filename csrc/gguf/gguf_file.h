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

// What a model file states about the rotation of its attention heads by positions (RoPE).
struct Rotation {
    std::int64_t head_size = 0;  // numbers of a head; 0: no attention
    // How many numbers of a head are rotated. If layers with sliding windows have another count,
    // the lower one. None: not stated, all are rotated.
    std::optional<std::int64_t> n_turned;
    // How many pairs of numbers each of the four positions of a token rotates, in models with four
    // positions; empty: not stated.
    std::vector<std::int64_t> sections;
};

// Information from the header of a model file that is needed before the file is loaded.
struct Header {
    std::string path;
    std::vector<std::string> files;  // see GgufReader::files
    std::string architecture;
    Architecture traits;
    // Whether the file has layers of multi-token prediction without the layers before them, so it
    // can only draft for another model.
    bool is_prediction = false;
    // Matrices that are multiplied with activations, without lookup tables.
    std::vector<Matrix> matrices;
    // Attention heads of a layer, and the numbers of one head; 0: no attention, or each layer has
    // its own number of heads.
    int n_heads = 0;
    int head_size = 0;
    bool has_sliding_window = false;
    // Whether positions are rotated differently in long contexts than in short ones.
    bool long_rope = false;
    Rotation rotation;
    int n_ctx_train = 0;
    Weights weights;
    // What each layer keeps of texts. Layers of multi-token prediction, the last ones of `weights`,
    // are not included.
    struct Layer {
        double kv_numbers = 0;      // per token
        double window_numbers = 0;  // per token in a sliding window
        double state_numbers = 0;   // of a recurrent state, per sequence
    };
    std::vector<Layer> layers;
    int n_window = 0;  // length of sliding windows in tokens
    // Whether llama.cpp requires keys and values of the same type: with latent attention, values
    // are a part of the keys.
    bool one_kv_type = false;
    // Estimate of the numbers in memory while one token is computed.
    double compute_numbers_per_token = 0;
    int n_vocab = 0;
    int width = 0;  // numbers of a token's state between two layers
    // The fraction of the experts that a token uses.
    double expert_share = 1;
    // Length of the target's states that a head reads; 0: the file is not a head.
    int target_width = 0;
    // Whether a head has no output and uses that of its target.
    bool shares_output = false;

    // Whether the file can only draft, from states of its target.
    bool is_head() const { return is_prediction || traits.is_head(); }
    // Description of such a file, e.g. "an EAGLE-3 head".
    std::string head_name() const;
};

// Throws ModelError, with one sentence for the user, unless `path` is a complete GGUF file of a
// model that generates text. This includes llama.cpp's assertions about the file, which would end
// the process.
Header check_gguf(const std::string& path);

// Why llama.cpp cannot apply this rotation, as the rest of a sentence about the file; "": it can.
// type: the model's llama_model_rope_type.
std::string rotation_fault(const Rotation& rotation, llama_rope_type type);

}  // namespace specllama
