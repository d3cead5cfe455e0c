#pragma once

#include <cstdint>
#include <string>

#include "specllama/session_options.h"

namespace specllama {

// What a GGUF file (with its other parts, if it is split) says about its model.
struct ModelFile {
    std::string architecture;  // e.g. "llama"
    std::string weight_type;   // e.g. "Q4_K - Medium"
    std::uint64_t n_parameters = 0;
    std::uint64_t weight_bytes = 0;
    int n_tokens = 0;
    int width = 0;  // numbers of a state; that of the model's projector is equal
    // Equal for models whose vocabularies are the same, so that one could draft for the other.
    std::uint64_t vocabulary = 0;
    // Whether the model's memory can be cut back, which a draft model needs.
    bool can_draft = false;
    // What the file is if it only drafts, from what its target computes, e.g. "an EAGLE-3 head";
    // "": a model.
    std::string head;
    // Whether the file contains a head for its own model: see brings_head.
    bool brings_head = false;
};

// Reads headers and vocabulary but no weights. Throws ModelError if loading the file would, as far
// as that shows without the weights.
ModelFile read_model_file(const std::string& path);

// What the file of a multimodal projector says: whether it encodes images and sounds, and how many
// numbers the states of its text model have.
struct ProjectorFile {
    bool sees = false;
    bool hears = false;
    int width = 0;
};

// Throws ModelError if it is not such a file, or if its header shows damage.
ProjectorFile read_projector(const std::string& path);

// Whether a model's file contains a head, layers of multi-token prediction, that can draft for the
// model. Reads the header only. Throws ModelError.
bool brings_head(const std::string& path);

// Throws ModelError unless a head (ModelFile::head) can draft for a model that has the same
// vocabulary. Reads the headers only.
void check_head(const std::string& head, const std::string& target);

// What drafts for a model if its user does not say: the bundled draft model for the bundled target
// (bundled_draft: its path; "": the target is another one). Else, of the layers of multi-token
// prediction in the model's own file ("mtp") and the heads and smaller models next to it (a path)
// that fit, the one that reads the fewest bytes of weights for a drafted token: that is what
// drafting costs where memory is the limit, and whether it pays is left to the planner. A notice
// names a file that is chosen. "ngram": there is none. Throws ModelError.
std::string automatic_draft(const std::string& target, const std::string& bundled_draft);

// One sentence if some of a model's weights are of types without fast kernels for this machine's
// CPU: which, and how fast the model would decode in other types, by times that are measured once
// on this machine (within a second). "": there are none that matter, or a GPU would decode. Throws
// ModelError.
std::string slow_types(const std::string& path);

// The file that drafts for a target on this machine's CPU if draft_type is `type`: the given one,
// or a copy in other types, which exists or is made now. Throws InvalidArgument, ModelError,
// Interrupted, and what `progress` (may be empty) throws.
std::string draft_in_type(const std::string& draft, const std::string& target,
                          const std::string& type, const ProgressFunction& progress);

}  // namespace specllama
