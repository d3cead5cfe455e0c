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
};

// Reads headers and vocabulary but no weights. Throws ModelError where loading the file would, as
// far as that can be told without the weights.
ModelFile read_model_file(const std::string& path);

}  // namespace specllama
