#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llama/vocab.h"
#include "sample/mask.h"

namespace specllama {

// The mask that makes a text follow a grammar in llama.cpp's GBNF, from its rule `root` on; with
// triggers, the text from the first of them on (see SamplingOptions).
// Throws InvalidArgument when the grammar cannot be read, is longer than 64 kB, nests deeper than
// 64 groups, or has more than 4096 rules and repetitions. The mask throws DecodeError once a step
// takes longer than a second: an ambiguous grammar may take ever longer.
std::unique_ptr<Mask> make_grammar(const Vocab& vocab, const std::string& gbnf,
                                   const std::vector<std::string>& triggers = {});

}  // namespace specllama
