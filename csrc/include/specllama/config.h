#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// What may be left to circumstances.
enum class Switch { automatic, on, off };

// Which of llama.cpp's kernels multiply with weights on the CPU: the fastest, or the fastest of
// those that give a token the same bits however many are decoded at once.
enum class Kernels { fastest, same_bits };

struct ModelOptions {
    // Path of a GGUF file; of the first part when the model is split.
    std::string path;
    // Layers kept on the GPU; -1: all that fit; 0: no device is used at all. None: all, or, where
    // exactness is demanded, none.
    std::optional<int> n_gpu_layers;
    // Names of the GPUs that hold these layers, as list_devices() gives them, separated by commas;
    // "none": no device is used at all; "": all.
    std::string device;
    // RPC servers of llama.cpp's, "host:port,host:port", whose devices hold these layers, too: they
    // stand before this machine's GPUs, and layers are shared out by free memory. "": none. What
    // goes there is neither authenticated nor encrypted, and where one is lost the process ends
    // (docs/rpc.md).
    std::string rpc;
    Kernels kernels = Kernels::fastest;
};

struct ContextOptions {
    // Tokens of a request, prompt and generation together; 0: the smaller of the trained context
    // and 8192.
    int n_ctx = 0;
    // Requests served at once, 1 to 64.
    int n_seq = 1;
    // Sequences beyond n_seq that share the cells of others and have no room of their own; with one
    // request only, and not of recurrent and hybrid models.
    int n_forks = 0;
    // Largest number of tokens decoded at once, n_seq to 8192; also the chunk of a prefill.
    int n_batch = 512;
    // 0: one per performance core.
    int n_threads = 0;
    // automatic: where the device has it, but for models on a CPU that are faster without it
    // (llama/attention.h).
    Switch flash_attn = Switch::automatic;
    // Type of the KV memory: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl. None: f16, or,
    // where exactness is demanded, q8_0.
    std::optional<std::string> kv_type;
    // Whether a token that would be decoded alone is decoded with another beside it, which is then
    // forgotten: float weights give other low bits to a batch of one.
    bool never_alone = false;
    // Whether each request's KV memory lies apart, so that the others change no bit of what is
    // computed from it. Some models' memories always do.
    bool split = false;
    // Whether the memory of a sliding window keeps the whole text. Otherwise tokens take the places
    // of those that have left the window, and in which order sums are taken depends on what was
    // there before.
    bool whole_window = false;
};

// Options of the n-gram predictor and of the drafter built on it.
struct NGramOptions {
    // Longest n-gram, 2 to 8: contexts are up to max_order - 1 tokens.
    int max_order = 4;
    // Only counts of the last `window` tokens are kept; 0: nothing is forgotten.
    int window = 0;
    // Bound on the memory of the tables, in bytes; the oldest contexts go first. The drafter keeps
    // the text, too, and a reference text, to find matches in: each within the same bound.
    std::size_t max_bytes = std::size_t{64} << 20;
    // Draft by drawing from the relative frequencies, not by taking the most frequent token, where
    // the temperature is above 0. With rejection, more is accepted so.
    bool draw = false;
};

// A second GGUF that drafts for the target: a smaller model, or an EAGLE-3 head. It must have the
// target's vocabulary.
struct DraftModelOptions {
    ModelOptions model;
    // In its place, the layers of multi-token prediction in the target's own file; see brings_head.
    bool mtp = false;
    // n_ctx, n_seq and n_batch become the target's.
    ContextOptions context;
    // A draft ends before a token that the draft model gives less than this probability; 0: off.
    // (With rejection: whose likeliest alternative has less.)
    double p_min = 0;
    // How the draft model's tokens are chosen; none: as the target's.
    std::optional<double> temperature;
    std::optional<int> top_k;
    std::optional<double> top_p;
    std::optional<double> min_p;
};

// Called with the fraction done, 0 to 1. Returning false cancels with Interrupted; what it throws
// is passed on.
using ProgressFunction = std::function<bool(float)>;

struct SessionOptions {
    ModelOptions model;
    ContextOptions context;
    // Most tokens drafted per round, 1 to kMaxSpecLength. None: what pays, by the measured time of
    // decodes and the acceptance found.
    std::optional<int> spec_length;
    // Most guesses at a position that are verified at once, 1 to kMaxGuesses; 1: drafts are chains.
    // With a fixed spec_length all that there are; else what pays. None: chains, since trees have
    // not been seen to gain anything by the clock. (Chains, too, where the memory cannot hold
    // several guesses: recurrent and hybrid models, sliding windows, several requests with memories
    // of their own.)
    std::optional<int> spec_tree;
    // Drafts beside the drafter that the session is given, or, with a fixed spec_length, in its
    // place.
    std::optional<DraftModelOptions> draft_model;
    // Path of a corpus file of the model's vocabulary, which is drafted from as well, but not
    // beside a draft model with a fixed spec_length; "": none.
    std::string corpus;
    // Whether drafts may come from outside: see Stream::offer.
    bool offers = false;
    // Whether speculative and plain decoding must give the same tokens to the last one; elsewhere
    // they may differ where two tokens are nearly tied. automatic: where it costs nothing beside
    // what the other options ask for; see llama/exact.h for the table. on: where it cannot be had,
    // the session is refused, with the reason.
    Switch exact = Switch::automatic;
    ProgressFunction load_progress;
};

// What becomes of a draft token.
enum class AcceptanceRule {
    // It is kept if it is what the target chooses. The output does not depend on the drafter.
    coupled,
    // Speculative sampling: it is kept with probability p / q, which is more often. The output has
    // the target's distribution, but which one of its texts comes depends on the drafter.
    rejection,
};

// How a token is chosen from the target's logits. The steps come in this order: bias and penalties,
// grammar, top_k, top_p, min_p, temperature.
struct SamplingOptions {
    // 0: the most likely token, always; more: the further from that, the less likely tokens come.
    double temperature = 0;
    // Only the k most likely tokens; 0 or -1: off.
    int top_k = 0;
    // Only the most likely tokens that together have this probability; 1: off.
    double top_p = 1;
    // Only tokens at least this fraction as likely as the most likely one; 0: off.
    double min_p = 0;
    // Of tokens among the last penalty_last_n (the prompt's included; -1: all), positive logits are
    // divided and negative ones multiplied by repeat_penalty (1: off), and the logits lowered by
    // frequency_penalty for each occurrence and once by presence_penalty (0: off).
    double repeat_penalty = 1;
    double frequency_penalty = 0;
    double presence_penalty = 0;
    int penalty_last_n = 64;
    // Added to the logits of single tokens; -infinity forbids one.
    std::vector<std::pair<Token, float>> logit_bias;
    // Log-probabilities of each token and of this many most likely ones at its position; -1: none.
    // Of the model's own distribution, or of what the steps above make of it.
    int logprobs = -1;
    bool processed_logprobs = false;
    // Same seed, same tokens, whoever drafts; none: a fresh one, reported in Stats.
    std::optional<std::uint64_t> seed;
    AcceptanceRule acceptance = AcceptanceRule::coupled;
    // For rejection, more than 0: below 1, draft tokens are kept more often than p / q, and the
    // output is no longer the target's: no token comes more often than with p / lenience.
    // (At temperature 0: a token at least this fraction as likely as the likeliest is kept.)
    double lenience = 1;
    // GBNF text whose rule `root` the output must follow; "": anything. (As in llama.cpp, the
    // grammar is asked about the chosen token first, and masks the others only if that may not
    // come; with rejection it masks them always.)
    std::string grammar;
    // Texts at the first of which the grammar begins, that text included; before it anything may
    // come, and where the rest of the token it ends in does not fit, it is not one. None: the
    // grammar holds from the start.
    std::vector<std::string> grammar_triggers;
};

struct GenerateOptions {
    // Most tokens to generate, as many as the context has room for; -1: until it is full. None:
    // 256, or until it is full.
    std::optional<int> max_tokens;
    // The text ends before the first of these; none may be empty.
    std::vector<std::string> stop;
    SamplingOptions sampling;
    // Text that the n-gram drafter may copy from besides prompt and generation: the file being
    // edited, retrieved documents. It is no part of the prompt, and changes what a drafter may.
    std::vector<Token> reference;
    // For measuring: everything is done as always, but these are what the target is taken to have
    // chosen. The generation ends with them.
    std::vector<Token> replayed;
    // What an earlier request of the same prompt and options, its seed among them, has generated
    // before it broke off: the generation goes on behind these as that one would have.
    std::vector<Token> generated;
    // Whether each round but the first waits for a draft from outside, and verifies that: see
    // Stream::offer.
    bool paced = false;
    // Whether Stream::trace tells what every round did.
    bool trace = false;
};

}  // namespace specllama
