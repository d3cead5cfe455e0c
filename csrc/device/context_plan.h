#pragma once

#include <cstddef>
#include <string>

#include "device/kernels.h"
#include "specllama/session_options.h"

struct llama_context_params;

namespace specllama {

// A context's options, and the library's decisions about it.
struct ContextPlan : ContextOptions {
    // Extra sequences that share the cells of others and have no room of their own; with n_seq = 1
    // only, and not for recurrent and hybrid models.
    int n_forks = 0;
    // Whether a lone token is decoded together with a second one, which is then cut off: with
    // float weights, a batch of one gives other low bits.
    bool never_alone = false;
    // Whether the last token of a prompt is decoded in a step of its own. Another request with the
    // same prompt finds all tokens but the last in the memory, and decodes that one alone; so both
    // get the same bits. That takes up to 3 % more time to the first token of usual prompts.
    bool last_alone = false;
    // Whether each request has a KV memory of its own, so that other requests change no bit of what
    // is computed from it. With n_seq > 1, the memories of some models always do.
    bool per_sequence_streams = false;
    // Whether the memory of a sliding window keeps the whole text. Otherwise new tokens take the
    // cells of tokens that have left the window, so the order of summation depends on what was
    // there before.
    bool whole_window = false;
};

// How a session's target is loaded and its context made: what the options say, and what is resolved
// where they leave it open.
struct TargetPlan {
    ModelOptions model;
    Kernels kernels = Kernels::fastest;
    ContextPlan context;
    // Most rows of logits of each sequence in a decode; it depends on who drafts.
    int n_logits = 1;
    // Memory of the multimodal projector, in addition to the model.
    std::size_t projector_bytes = 0;
    // Whether speculation changes no token at all; see resolve_exactness.
    bool exact = false;
};

// How a draft model is loaded and its context made: its options, with the target's where they leave
// something open.
struct DraftPlan : DraftModelOptions {
    ModelOptions model;
    ContextOptions context;
};

// mebibytes in bytes; -1: no limit.
std::size_t in_bytes(int mebibytes);

// Throws InvalidArgument if a number is out of range.
void check(const ContextOptions& options);

// Number of threads that decode: the one that the options name, else one per performance core.
int resolve_threads(const ContextOptions& options);

// Most tokens of a decode, as llama.cpp is asked for them.
int batch_size(const ContextPlan& plan);

// How many snapshots of a recurrent state a context asks llama.cpp for, which gives none for
// architectures without snapshots.
int snapshots(const ContextPlan& plan, int n_logits);

// Writes checked options to llama.cpp's parameters of a context.
void apply(const RopeOptions& options, llama_context_params& params);

// What is not as the model's file says, as parts of a sentence; "": all is.
std::string in_words(const RopeOptions& options);

}  // namespace specllama
