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
    option(&Options::yarn_orig_ctx, {.name = "yarn_orig_ctx",
                                     .help = "Tokens of context that the model was trained with, "
                                             "for yarn.",
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
            .help = "Tokens of context per request, for prompt and generation together. Unless it "
                    "is set, it is reduced, with a notice, when memory is short.",
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
    option(&Options::n_batch,
           {.name = "n_batch",
            .help = "Most tokens decoded at once, at least n_seq; also the chunk of a prefill.",
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
            .help = "Flash attention. auto: on if the device supports it, except on a CPU for head "
                    "sizes with which it is much slower (docs/internals/attention.md).",
            .choices = "auto on off",
            .flags = "-fa --flash-attn",
            .value = "WHEN"});
    option(&Options::kv_type,
           {.name = "kv_type",
            .help = "Type of the KV memory, or KEYS/VALUES, like q8_0/q5_1. Types: f32, f16, bf16, "
                    "q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl.",
            .unset = "f16, or bf16/f16 with exact",
            .flags = "-kv --kv-type",
            .value = "TYPE"});
    option(
        &Options::ctx_checkpoints,
        {.name = "ctx_checkpoints",
         .help =
             "Most checkpoints per request, for memories that cannot be cut back. With recurrent, "
             "hybrid and sliding-window models, a prompt that differs from the memory's content is "
             "decoded from the last checkpoint before the difference. Checkpoints are made at ends "
             "of messages. Above the limit, those closest to each other are dropped.",
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
