#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// Information about a multimodal projector's file that is needed before it is loaded.
struct Projector {
    // Type of the vision encoder or, without one, of the audio encoder, e.g. "gemma3".
    std::string type;
    bool sees = false;
    bool hears = false;
    // Numbers of a state of the text model, as stated by the file.
    int width = 0;
    std::uint64_t n_bytes = 0;  // of all tensors
};

// Throws ModelError, with one sentence for the user, unless `path` is a complete GGUF file of a
// multimodal projector. Checks all values that would end the process because libmtmd divides by
// them, allocates by them, or asserts them while it computes. Assertions of loading become errors
// there (AssertGuard).
Projector check_projector(const std::string& path);

}  // namespace specllama
