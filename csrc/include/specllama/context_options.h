#pragma once

#include <optional>
#include <string>

#include "specllama/option.h"

namespace specllama {

// The memory of a model, and how it decodes. The table below each struct has each option's effect,
// range and special values.

// A switch; automatic: the library decides.
enum class Switch { automatic, on, off };

// RoPE of target and draft model, for contexts longer than those of the training.
struct RopeOptions {
    std::optional<std::string> scaling;
    std::optional<double> scale;
    std::optional<double> freq_base;
    std::optional<int> yarn_orig_ctx;
};

template <typename Visit>
void list_options(const RopeOptions*, Visit&& option) {
    using Options = RopeOptions;
    option(&Options::scaling,
           {.name = "rope_scaling",
            .help = "RoPE scaling method, for contexts longer than trained. For Qwen2.5 with "
                    "131072 tokens, e.g.: yarn, with rope_scale 4 and yarn_orig_ctx 32768 (Peng et "
                    "al., \"YaRN\", 2023).",
            .choices = "none linear yarn",
            .unset = "from the model file",
            .flags = "--rope-scaling",
            .value = "METHOD"});
    option(&Options::scale, {.name = "rope_scale",
                             .help = "RoPE context scaling factor.",
                             .low = 0.001,
                             .high = 1000,
                             .unset = "from the model file",
                             .flags = "--rope-scale"});
    option(&Options::freq_base, {.name = "rope_freq_base",
                                 .help = "RoPE base frequency.",
                                 .low = 1,
                                 .high = 1e12,
                                 .unset = "from the model file",
                                 .flags = "--rope-freq-base"});
    option(&Options::yarn_orig_ctx,
           {.name = "yarn_orig_ctx",
            .help = "Context length that the model was trained with, in tokens, for yarn.",
            .low = 1,
            .unset = "from the model file",
            .flags = "--yarn-orig-ctx"});
}

// The memory of a model, and how it decodes.
struct ContextOptions {
    int n_ctx = -1;
    int n_seq = 1;
    int n_batch = 512;
    int n_threads = 0;
    Switch flash_attn = Switch::automatic;
    std::optional<std::string> kv_type;
    int ctx_checkpoints = 32;
    int checkpoint_ram = 1024;
    RopeOptions rope;
};

template <typename Visit>
void list_options(const ContextOptions*, Visit&& option) {
    using Options = ContextOptions;
    option(&Options::n_ctx,
           {.name = "n_ctx",
            .help = "Context length of each request in tokens, prompt and answer together. Unless "
                    "it is set, it is reduced, with a notice, when memory is short.",
            .low = -1,
            .high = 1 << 30,
            .special = "0: the model's own",
            .unset = "the model's own, at most 8192",
            .flags = "-c --ctx-size"});
    option(&Options::n_seq, {.name = "n_seq",
                             .help = "Maximum number of concurrent requests; others wait.",
                             .low = 1,
                             .high = 64,
                             .flags = "-np --parallel --n-seq"});
    option(&Options::n_batch, {.name = "n_batch",
                               .help = "Maximum number of tokens per decode; long prompts are "
                                       "decoded in chunks of it. At least n_seq.",
                               .low = 1,
                               .high = 8192,
                               .flags = "-b --batch-size"});
    option(&Options::n_threads, {.name = "n_threads",
                                 .help = "Number of threads. Unless it is set, fewer are used "
                                         "while other programs use the processor.",
                                 .low = 0,
                                 .high = 512,
                                 .unset = "one per performance core",
                                 .flags = "-t --threads"});
    option(&Options::flash_attn,
           {.name = "flash_attn",
            .help = "Flash attention. auto: where the device supports it, except on a CPU for "
                    "heads with which it is much slower (docs/internals/attention.md).",
            .choices = "auto on off",
            .flags = "-fa --flash-attn",
            .value = "WHEN"});
    option(&Options::kv_type,
           {.name = "kv_type",
            .help = "Type of the KV cache: f16, q8_0 or another; or KEYS/VALUES, like q8_0/q5_1. "
                    "One of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl.",
            .unset = "f16, or bf16/f16 with exact",
            .flags = "-kv --kv-type",
            .value = "TYPE"});
    option(
        &Options::ctx_checkpoints,
        {.name = "ctx_checkpoints",
         .help =
             "Maximum number of checkpoints per request, for recurrent, hybrid and sliding-window "
             "models. Their memory cannot be cut back: a prompt that differs from what it holds is "
             "decoded again from the last checkpoint before the difference. Checkpoints are at "
             "ends of messages; the more there are, the more evenly they are spread over the text.",
         .low = 0,
         .high = 1024,
         .special = "0: none",
         .flags = "-ctxcp --ctx-checkpoints --swa-checkpoints"});
    option(&Options::checkpoint_ram,
           {.name = "checkpoint_ram",
            .help = "RAM in MiB for the checkpoints of all requests together. A checkpoint also "
                    "takes at most 1/32 of the memory that is free.",
            .low = -1,
            .special = "0: none; -1: unlimited",
            .flags = "--checkpoint-ram",
            .value = "MIB"});
    option(&Options::rope);
}

}  // namespace specllama
