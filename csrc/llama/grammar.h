#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llama/vocab.h"
#include "sample/mask.h"

namespace specllama {

// The mask that makes a text follow a grammar in llama.cpp's GBNF, from its rule `root` on; with
// triggers, the text from the first of them on (see SamplingOptions).
// Throws InvalidArgument when the grammar cannot be read, is longer than 64 kB, or is more than can
// be read in a moment (see parse_gbnf and check_beginnings). The mask throws DecodeError once a
// step takes longer than a second, or ever longer with longer tokens: the grammar is too ambiguous.
std::unique_ptr<Mask> make_grammar(const Vocab& vocab, const std::string& gbnf,
                                   const std::vector<std::string>& triggers = {});

}  // namespace specllama
