#pragma once

#include <string>

#include "specllama/beam.h"
#include "specllama/generate_options.h"
#include "specllama/media.h"
#include "specllama/types.h"
#include "text/vocabulary.h"

namespace specllama {

// The checks of a session's requests before any work. All throw InvalidArgument with one sentence
// for the user.

// Checks that a prompt has tokens, that their ids are valid, and that they leave room for at least
// one more in a context of n_ctx tokens. media: the chunks of its negative ids, see MediaPrompt.
void check_prompt(TokenSpan prompt, const Vocabulary& vocab, int n_ctx,
                  const MediaChunks& media = {});

// Checks the tokens of a saved state, which may include ids of any images and sounds, in a context
// of n_ctx tokens.
void check_saved(TokenSpan tokens, const Vocabulary& vocab, int n_ctx);

// Checks a prompt and the options of its generation. It does not parse the grammar, and does not
// check that the options could have generated GenerateOptions::generated; Sequence does.
void check_request(TokenSpan prompt, const MediaChunks& media, const GenerateOptions& options,
                   const Vocabulary& vocab, int n_ctx);

// Refuses options of a generation that a remote target does not support.
void check_remote(const GenerateOptions& options);
// Throws the error for a feature that needs the model in this process. what: the subject of its
// sentence.
[[noreturn]] void refuse_remote(const std::string& what);

// Checks a prompt and the options of a beam search that do not depend on the context; BeamSearch
// checks the others.
void check_search(TokenSpan prompt, const BeamOptions& options, const Vocabulary& vocab, int n_ctx);

}  // namespace specllama
