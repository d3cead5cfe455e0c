#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "specllama/types.h"

namespace specllama {

// Properties of an open session. They never change.
struct SessionInfo {
    // The model. description: from its file, e.g. "llama 7B Q8_0". vocabulary: a fingerprint, the
    // same for the same vocabulary on every machine. bos, eos: the tokens that begin and end a
    // text; kNoToken: none.
    std::string description;
    int n_vocab = 0;
    std::uint64_t vocabulary = 0;
    Token bos = kNoToken;
    Token eos = kNoToken;
    FimTokens fim;
    std::optional<std::string> chat_template;  // in Jinja; nullopt: none
    // Whether prompts may contain images. audio_rate: samples per second of sounds in prompts; 0:
    // no sounds.
    bool sees = false;
    int audio_rate = 0;

    // Maximum number of tokens of one request, prompt and generation together; requests served at
    // once; threads that decode.
    int n_ctx = 0;
    int n_seq = 0;
    int n_threads = 0;
    // The CPU kernels and their shares of the weights, e.g. "AMX 76 %, plain 24 %"; "": a GPU holds
    // weights.
    std::string cpu_kernels;

    // Drafts. max_draft_length: most tokens in a row of a draft that a round verifies; 0: the
    // session verifies no drafts. max_candidates: most candidates for one position (1: drafts are
    // chains). max_draft_tokens: most tokens, all branches included.
    int max_draft_length = 0;
    int max_candidates = 1;
    int max_draft_tokens = 0;
    // Whether there is a drafter of each kind: see SpecType.
    bool drafts_by_model = false;
    bool drafts_by_ngram = false;
};

}  // namespace specllama
