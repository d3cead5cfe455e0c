#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "specllama/context_options.h"
#include "specllama/media_options.h"
#include "specllama/model_options.h"
#include "specllama/ngram_options.h"
#include "specllama/option.h"
#include "specllama/types.h"

namespace specllama {

// Options of a session. The table below each struct has each option's effect, range and special
// values.

// A second model that drafts: a smaller one, or a head for the target (EAGLE-3, or an assistant of
// Gemma 4). It must have the target's vocabulary.
struct DraftModelOptions {
    // Path of its GGUF file; "": none, unless the target's own layers draft.
    std::string path;
    // Whether the layers of multi-token prediction in the target's own file draft.
    bool mtp = false;
    std::string type = "auto";
    std::optional<int> n_gpu_layers;
    std::optional<std::string> device;
    std::optional<int> n_threads;
    std::optional<std::string> kv_type;
    double p_min = 0;
    std::optional<double> temperature;
    std::optional<int> top_k;
    std::optional<double> top_p;
    std::optional<double> min_p;

    bool any() const { return mtp || !path.empty(); }
};

template <typename Visit>
void list_options(const DraftModelOptions*, Visit&& option) {
    using Options = DraftModelOptions;
    option(&Options::path, {.name = "draft_model"});
    option(&Options::mtp, {.name = "draft_mtp"});
    option(&Options::type,
           {.name = "draft_type",
            .help = "Type to which the draft model's weights are converted; auto: a faster one if "
                    "this processor has one, keep: none. The file is converted once, into the "
                    "cache folder (SPECLLAMA_CACHE), and the copy drafts; only for a draft model, "
                    "head or block drafter in a file of its own, on the CPU "
                    "(docs/guides/draft-types.md). auto: a type that this machine multiplies at "
                    "least 1.15 times as fast, for files of at most a quarter of the model's size.",
            .choices = "auto keep q4_0 q4_1 q8_0 iq4_nl",
            .flags = "--draft-type",
            .value = "TYPE"});
    option(&Options::n_gpu_layers, {.name = "draft_n_gpu_layers",
                                    .help = "Number of the draft model's layers on GPUs.",
                                    .low = -1,
                                    .special = "-1: all that fit",
                                    .unset = "as for the model",
                                    .words = "auto=-1 all=-1",
                                    .flags = "-ngld --n-gpu-layers-draft --gpu-layers-draft"});
    option(&Options::device, {.name = "draft_device",
                              .help = "GPUs for the draft model's layers.",
                              .unset = "as for the model",
                              .flags = "-devd --device-draft",
                              .value = "NAME,..."});
    option(&Options::n_threads, {.name = "draft_n_threads",
                                 .help = "Number of threads of the draft model.",
                                 .low = 0,
                                 .high = 512,
                                 .unset = "as for the model",
                                 .flags = "-td --threads-draft"});
    option(&Options::kv_type, {.name = "draft_kv_type",
                               .help = "Type of the draft model's KV cache.",
                               .unset = "as for the model",
                               .flags = "-kvd --kv-type-draft",
                               .value = "TYPE"});
    option(&Options::p_min,
           {.name = "draft_p_min",
            .help =
                "Stop a draft where the draft model gives the next token a probability below P. "
                "With acceptance=\"rejection\", the likeliest token's counts, not the drawn one's.",
            .low = 0,
            .high = 1,
            .special = "0: off",
            .flags = "--draft-p-min",
            .value = "P"});
    option(&Options::temperature,
           {.name = "draft_temperature",
            .help = "Temperature of the draft model; the output is still the model's.",
            .low = 0,
            .unset = "the model's"});
    option(&Options::top_k, {.name = "draft_top_k",
                             .help = "Value of top_k for the draft model.",
                             .low = -1,
                             .unset = "the model's"});
    option(&Options::top_p, {.name = "draft_top_p",
                             .help = "Value of top_p for the draft model.",
                             .low = 0,
                             .high = 1,
                             .unset = "the model's"});
    option(&Options::min_p, {.name = "draft_min_p",
                             .help = "Value of min_p for the draft model.",
                             .low = 0,
                             .high = 1,
                             .unset = "the model's"});
}

// Called with the fraction done, 0 to 1. Returning false cancels with Interrupted; its exceptions
// are passed on.
using ProgressFunction = std::function<bool(float)>;

// Maximum of SessionOptions::memory in MiB, and its default with a memory_file.
inline constexpr int kMostMemory = 3584;
inline constexpr int kDefaultMemory = 64;

struct SessionOptions {
    ModelOptions model;
    ContextOptions context;
    MediaOptions media;
    // None: as many as pay, given the measured time of decodes and the acceptance seen so far.
    std::optional<int> spec_length;
    // None: 1, since trees were not faster in any measurement.
    std::optional<int> spec_tree;
    // Drafts in addition to the drafter given to the session; with a fixed spec_length and no
    // trees, instead of it.
    DraftModelOptions draft;
    // The n-gram drafter. It proposes what followed the same tokens earlier in the sequence or in
    // its reference text, by frequency or as a copy. With a draft model, it counts as the drafter
    // given to the session.
    std::optional<NGramOptions> ngram;
    // Drafts from the corpus are used, too, except with a draft model, a fixed spec_length and no
    // trees.
    std::string corpus;
    // Whether the session can verify drafts even without a drafter, for requests with
    // GenerateOptions::draft.
    bool verifies = false;
    // Drafts from earlier requests are used under the same conditions as those from the corpus.
    std::optional<int> memory;
    std::string memory_file;
    int cache_ram = 0;
    // Whether speculative and plain decoding must give exactly the same tokens; otherwise they may
    // differ where two tokens are nearly tied. automatic: exact if the other options allow it at no
    // cost (device/exact.h has the list). on: a session that cannot be exact is refused, with the
    // reason.
    Switch exact = Switch::automatic;
    ProgressFunction load_progress;
};

template <typename Visit>
void list_options(const SessionOptions*, Visit&& option) {
    using Options = SessionOptions;
    option(&Options::model);
    option(&Options::context);
    option(&Options::media);
    option(
        &Options::spec_length,
        {.name = "spec_length",
         .help = "Maximum number of tokens drafted per round; auto: as many as make it faster. "
                 "auto goes by the decode times of this machine and by what was accepted so far, "
                 "and may draft nothing. (The clock then decides which batch widths are decoded: "
                 "outside the exact configuration, use a fixed number for repeatable runs.)",
         .low = 1,
         .high = kMaxSpecLength,
         .unset = "auto",
         .flags = "--spec-length"});
    option(&Options::spec_tree,
           {.name = "spec_tree",
            .help = "Maximum number of candidates checked per position (a tree of drafts). These "
                    "are second and third choices of a draft model, and proposals of several "
                    "drafters. With a fixed spec_length all are verified (spec_length times "
                    "spec_tree at most 64), otherwise those that make it faster. auto: 1, a chain. "
                    "Drafts are always chains with recurrent and hybrid models, sliding windows, "
                    "and exact=True with n_seq above 1 (docs/internals/trees.md).",
            .low = 1,
            .high = kMaxTreeWidth,
            .special = "1: off",
            .unset = "auto",
            .words = "off=1",
            .flags = "--spec-tree",
            .value = "K"});
    option(&Options::draft);
    option(
        &Options::corpus,
        {.name = "corpus",
         .help = "Corpus file to copy drafts from, made by `specllama corpus build`. It must have "
                 "been made with this model's vocabulary. It has no effect with draft=None, and "
                 "none with a draft model and a fixed spec_length unless spec_tree is above 1.",
         .unset = "none",
         .flags = "--corpus",
         .value = "FILE"});
    option(&Options::memory,
           {.name = "memory",
            .help = "RAM in MiB for texts of earlier requests to draft from; 1 MiB holds 75,000 "
                    "tokens. The oldest are dropped first. It changes how long a request takes, "
                    "never its output. It has no effect where a corpus has none.",
            .low = 0,
            .high = kMostMemory,
            .special = "0: off",
            .unset = "0, or 64 with memory_file",
            .words = "off=0",
            .flags = "--memory",
            .value = "MIB"});
    option(&Options::memory_file,
           {.name = "memory_file",
            .help = "File that keeps these texts between sessions. It is read when the session "
                    "opens and written when it closes, for its user alone (mode 0600). It belongs "
                    "to the model's vocabulary, and can be used as a corpus.",
            .unset = "none",
            .flags = "--memory-file",
            .value = "FILE"});
    option(&Options::verifies, {.name = "verifies"});
    option(&Options::cache_ram,
           {.name = "cache_ram",
            .help = "RAM in MiB for prompts whose slot another request has taken. A prompt that "
                    "begins like one of them costs only its new tokens. Entries unused for longest "
                    "are dropped first. At most half of the memory that is free without them (on "
                    "macOS, of all memory).",
            .low = -1,
            .special = "0: off; -1: unlimited",
            .flags = "-cram --cache-ram",
            .value = "MIB"});
    option(&Options::exact,
           {.name = "exact",
            .help = "Guarantee of the same tokens with and without speculation; on: required, "
                    "auto: where it costs nothing. It needs an x86-64 processor and no GPU, a KV "
                    "cache in bf16/f16 with flash attention, and weights of known types "
                    "(docs/internals/exactness.md). on: an error names the obstacle, if there is "
                    "one. `Stats.exact` says whether a run was exact.",
            .choices = "auto on off",
            .flags = "--exact",
            .value = "WHEN"});
}

}  // namespace specllama
