#pragma once

#include <memory>
#include <string>
#include <vector>

#include "constraint/grammar_compiler.h"
#include "runtime/vocab.h"
#include "sample/mask.h"
#include "specllama/generate_options.h"

namespace specllama {

// Makes the mask by which a text follows options.grammar, from the first of its triggers on if it
// has some. vocab: the compiler's; the mask uses it. Throws InvalidArgument if the grammar cannot
// be read. The mask throws DecodeError if following it takes too much work.
std::unique_ptr<Mask> make_grammar(const Vocab& vocab, std::shared_ptr<GrammarCompiler> compiler,
                                   const SamplingOptions& options);

}  // namespace specllama
