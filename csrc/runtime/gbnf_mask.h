#pragma once

#include <memory>
#include <string>

#include "runtime/vocab.h"
#include "sample/mask.h"

namespace specllama {

// Makes the mask of a GBNF grammar with llama.cpp's own engine, for the executable without Python,
// which has no llguidance. llama.cpp does not bound the work that a grammar takes, so the grammar
// must come from this machine's user. Throws InvalidArgument if the grammar cannot be read;
// llama.cpp writes the reason to stderr.
std::unique_ptr<Mask> make_gbnf_mask(const Vocab& vocab, const std::string& gbnf);

}  // namespace specllama
