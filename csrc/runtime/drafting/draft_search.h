#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace specllama {

// Finds drafts without being given a path: files next to a model.

// A file that could draft for the model.
struct NearbyDraft {
    Header header;
    std::string what;            // e.g. "an EAGLE-3 head"
    double bytes_per_token = 0;  // expected bytes of weights read by target and drafter
};

// The files next to a model that could draft for it, those with the fewest bytes_per_token first.
// Candidates are files with the usual names of heads and drafts (mtp-, eagle3-, dflash-, dspark-),
// and models of the same architecture with at most a tenth of its weights. "Next to" means in the
// same folder or, in the cache of the Hugging Face Hub, anywhere in the same repository. Their
// headers decide, not their names. Files that cannot be read, do not match, or do not fit into
// memory with the model are skipped.
std::vector<NearbyDraft> drafts_next_to(const Header& target);

// The bytes_per_token of the model with its own layers of multi-token prediction.
double own_prediction_bytes(const Header& target);

}  // namespace specllama
