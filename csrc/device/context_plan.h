#pragma once

#include <cstddef>
#include <string>

#include "device/kernels.h"
#include "specllama/session_options.h"

struct llama_context_params;

namespace specllama {

// A context's options, and the library's decisions about it.
struct ContextPlan : ContextOptions {
    // Additional sequences that only share cells of others; only with n_seq = 1, and not for
    // recurrent and hybrid models.
    int n_forks = 0;
    // Whether a single token is decoded together with a second one, which is then removed: with
    // float weights, a batch of one gives other low bits.
    bool never_alone = false;
    // Whether the last token of a prompt is decoded in a separate step. Another request with the
    // same prompt reuses all tokens but the last, and decodes that one alone, so both get the same
    // bits. This increases the time to first token by up to 3 % for usual prompts.
    bool last_alone = false;
    // Whether each request has a separate KV memory, so that other requests do not change its bits.
    // With n_seq > 1, some models always have separate memories.
    bool per_sequence_streams = false;
    // Whether the memory of a sliding window keeps the whole text. Otherwise new tokens reuse the
    // cells of tokens that left the window, so the order of summation depends on earlier texts.
    bool whole_window = false;
};

// How a session's target is loaded and its context created: its options, with open ones resolved.
struct TargetPlan {
    ModelOptions model;
    Kernels kernels = Kernels::fastest;
    ContextPlan context;
    // Maximum number of rows of logits of each sequence in a decode; depends on the drafters.
    int n_logits = 1;
    // Memory of the multimodal projector, in addition to the model.
    std::size_t projector_bytes = 0;
    // Whether speculation never changes a token; see resolve_exactness.
    bool exact = false;
};

// How a draft model is loaded and its context created: its options, with those of the target where
// they are open.
struct DraftPlan : DraftModelOptions {
    ModelOptions model;
    ContextOptions context;
};

// Bytes of this many MiB; -1: no limit.
std::size_t in_bytes(int mebibytes);

// Throws InvalidArgument if a number is out of range.
void check(const ContextOptions& options);

// Number of threads of a decode: by the options, or one per performance core.
int resolve_threads(const ContextOptions& options);

// Maximum number of tokens of a decode, as requested from llama.cpp.
int batch_size(const ContextPlan& plan);

// Number of snapshots of a recurrent state that a context requests from llama.cpp, which keeps none
// for architectures without snapshots.
int snapshots(const ContextPlan& plan, int n_logits);

// Sets llama.cpp's parameters of a context from checked options.
void apply(const RopeOptions& options, llama_context_params& params);

// The options that differ from the model's file, as parts of a sentence; "": none.
std::string in_words(const RopeOptions& options);

}  // namespace specllama
