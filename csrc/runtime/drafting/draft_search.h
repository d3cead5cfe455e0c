#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace specllama {

// Drafts that nobody named: files next to a model.

// A file that could draft for the model.
struct NearbyDraft {
    Header header;
    std::string what;            // e.g. "an EAGLE-3 head"
    double bytes_per_token = 0;  // of weights, expected to be read by target and drafter
};

// The files next to a model that could draft for it, those first that are expected to read least
// for a token: heads and drafts by the names that are usual for them (mtp-, eagle3-, dflash-,
// dspark-), and models of the same architecture with at most a tenth of its weights. "Next to"
// means in the same folder, or, in the cache of the Hugging Face Hub, anywhere in the same
// repository. Headers decide, not names. What cannot be read, does not fit, or finds no room in
// memory beside the model is passed over.
std::vector<NearbyDraft> drafts_next_to(const Header& target);

// The bytes_per_token of the model with its own layers of multi-token prediction.
double own_prediction_bytes(const Header& target);

}  // namespace specllama
