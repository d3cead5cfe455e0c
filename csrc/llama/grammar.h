#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llama/vocab.h"
#include "sample/mask.h"

namespace specllama {

// Checks the texts from which on a text follows a grammar: none is empty, holds a NUL character or
// has more than 4096 bytes, and all together have 65536 bytes at most. Throws InvalidArgument.
void check_triggers(const std::vector<std::string>& triggers);

// Makes the mask by which a text follows a grammar in llama.cpp's GBNF, beginning with its rule
// `root`. With triggers, the text follows it from the first trigger on (see SamplingOptions).
// Throws InvalidArgument if check_triggers does, or if the grammar cannot be read, is longer than
// 64 kB, or would take too long to read (see parse_gbnf and check_beginnings). The mask throws
// DecodeError if the grammar is too ambiguous: a step takes longer than a second, or ever longer
// with longer tokens.
std::unique_ptr<Mask> make_grammar(const Vocab& vocab, const std::string& gbnf,
                                   const std::vector<std::string>& triggers = {});

}  // namespace specllama
