#pragma once

#include <memory>
#include <string>

#include "runtime/vocab.h"
#include "sample/mask.h"

namespace specllama {

// Makes the mask by which a text follows a grammar in GBNF, with llama.cpp's own engine: for the
// executable without Python, which has no llguidance. llama.cpp does not bound the work that a
// grammar takes, so it must come from the user of this machine. Throws InvalidArgument if the
// grammar cannot be read; llama.cpp writes the reason to stderr.
std::unique_ptr<Mask> make_gbnf_mask(const Vocab& vocab, const std::string& gbnf);

}  // namespace specllama
