#pragma once

#include <string>

#include "specllama/beam.h"
#include "specllama/generate_options.h"
#include "specllama/media.h"
#include "specllama/types.h"
#include "text/vocabulary.h"

namespace specllama {

// The checks that a session makes of what it is asked for, before any work. All throw
// InvalidArgument, with one sentence for the user.

// Checks that a prompt has tokens, that the vocabulary has these, and that they leave room for at
// least one more in a context of n_ctx tokens. media: what its negative ids stand for, see
// MediaPrompt.
void check_prompt(TokenSpan prompt, const Vocabulary& vocab, int n_ctx,
                  const MediaChunks& media = {});

// Checks the tokens of a saved state, which may have the ids of any images and sounds, in a context
// of n_ctx tokens.
void check_saved(TokenSpan tokens, const Vocabulary& vocab, int n_ctx);

// Checks a prompt and the options of its generation. A grammar is not read yet, nor is it known
// whether GenerateOptions::generated can have been generated; Sequence finds that out.
void check_request(TokenSpan prompt, const MediaChunks& media, const GenerateOptions& options,
                   const Vocabulary& vocab, int n_ctx);

// Refuses the options of a generation that a target on a server does not support.
void check_remote(const GenerateOptions& options);
// Refuses what needs the model in this process. what: the subject of the sentence.
[[noreturn]] void refuse_remote(const std::string& what);

// Checks a prompt and the options of a beam search for which the context does not matter;
// BeamSearch checks the others.
void check_search(TokenSpan prompt, const BeamOptions& options, const Vocabulary& vocab, int n_ctx);

}  // namespace specllama
