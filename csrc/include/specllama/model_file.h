#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// What a GGUF file, with its other parts if it is split, says about its model.
struct ModelFile {
    std::string architecture;  // e.g. "llama"
    std::string weight_type;   // e.g. "Q4_K - Medium"
    std::uint64_t n_parameters = 0;
    std::uint64_t weight_bytes = 0;
    int n_tokens = 0;
    // Equal for models whose vocabularies are the same, so that one could draft for the other.
    std::uint64_t vocabulary = 0;
    // Whether its memory can be cut back, which drafting needs.
    bool can_draft = false;
    // Numbers of the states that a head (EAGLE-3) reads of the model that it drafts for; 0: no
    // head.
    int reads_width = 0;
    // Numbers of the states that such a head may read of this model; 0: llama.cpp does not tell
    // them.
    int tells_width = 0;
    // Whether it brings a head of its own along: see brings_head.
    bool brings_head = false;
};

// Reads headers and vocabulary but no weights. Throws ModelError where loading the file would, as
// far as that can be told without the weights.
ModelFile read_model_file(const std::string& path);

// Whether a model's file brings a head along, layers of multi-token prediction, that can draft for
// it. Reads the header only. Throws ModelError.
bool brings_head(const std::string& path);

}  // namespace specllama
