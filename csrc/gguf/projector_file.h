#pragma once

#include <cstdint>
#include <string>

namespace specllama {

// What must be known of a multimodal projector's file before it is loaded.
struct Projector {
    // Of the vision encoder, or else of the audio encoder, e.g. "gemma3".
    std::string type;
    bool sees = false;
    bool hears = false;
    // Numbers of a state of the text model, as the file says.
    int width = 0;
    std::uint64_t n_bytes = 0;  // of all tensors
};

// Throws ModelError, with one sentence for the user, unless `path` is a whole GGUF file of a
// multimodal projector. Checks what libmtmd divides by, allocates by, or asserts while it computes,
// which would end the process; what it asserts while it loads is an error then (AssertGuard).
Projector check_projector(const std::string& path);

}  // namespace specllama
