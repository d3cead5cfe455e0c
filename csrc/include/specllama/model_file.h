#pragma once

#include <cstdint>
#include <string>

#include "specllama/session_options.h"

namespace specllama {

// Properties of a model, from its GGUF file. If the file is split, all parts count.
struct ModelFile {
    std::string architecture;  // e.g. "llama"
    std::string weight_type;   // e.g. "Q4_K - Medium"
    std::uint64_t n_parameters = 0;
    std::uint64_t weight_bytes = 0;
    int n_tokens = 0;
    int width = 0;  // embedding length; the model's projector must have the same
    // Fingerprint. A draft model must have the same vocabulary as its target.
    std::uint64_t vocabulary = 0;
    // Whether the model's memory can be cut back, which a draft model needs.
    bool can_draft = false;
    // Kind of the file if it is a head that drafts from its target's hidden states, e.g. "an
    // EAGLE-3 head"; "": a complete model.
    std::string head;
    // Whether the file contains a head for its own model: see brings_head.
    bool brings_head = false;
};

// Reads the headers and the vocabulary, not the weights. Throws ModelError if these show that the
// file cannot be loaded.
ModelFile read_model_file(const std::string& path);

// Properties of a multimodal projector, from its file. width: embedding length of its text model.
struct ProjectorFile {
    bool sees = false;
    bool hears = false;
    int width = 0;
};

// Throws ModelError if the file is not a projector, or if its header is damaged.
ProjectorFile read_projector(const std::string& path);

// Whether a model's file contains layers of multi-token prediction that can draft for the model.
// Reads only the header. Throws ModelError.
bool brings_head(const std::string& path);

// Throws ModelError unless a head (ModelFile::head) can draft for a model with the same vocabulary.
// Reads only the headers.
void check_head(const std::string& head, const std::string& target);

// Chooses the drafter of a target for which the user names none. bundled_draft: path of the bundled
// draft model if the target is the bundled one; it is then the result. Otherwise "".
//
// The candidates are the layers of multi-token prediction in the target's file (result: "mtp") and
// the heads and smaller models next to it that fit (result: the path). The one that reads the
// fewest bytes of weights per drafted token wins, because this is the cost of drafting where memory
// is the limit; the planner decides whether it pays. A notice names a chosen file. Without
// candidates the result is "ngram". Throws ModelError.
std::string automatic_draft(const std::string& target, const std::string& bundled_draft);

// One sentence if some of a model's weights have types without fast kernels for this machine's CPU:
// which types, and how fast the model would decode in others. The times are measured once on this
// machine (within a second). "": no such types matter, or a GPU would decode. Throws ModelError.
std::string slow_types(const std::string& path);

// The file that drafts for a target on this machine's CPU if draft_type is `type`: `draft`, or its
// copy in other types, which is made if it does not exist. Throws InvalidArgument, ModelError,
// Interrupted, and any exception of `progress` (may be empty).
std::string draft_in_type(const std::string& draft, const std::string& target,
                          const std::string& type, const ProgressFunction& progress);

}  // namespace specllama
