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

// An option that may be left to the library to decide.
enum class Switch { automatic, on, off };

// A LoRA adapter: a change of a model's weights (Hu et al., 2021), in a GGUF file of its own.
struct LoraAdapter {
    std::string path;
    // How much of the change counts; 1: as much as it was trained with, 0: nothing.
    float scale = 1;
};

struct ModelOptions {
    // Path of a GGUF file; for a split model, of its first part.
    std::string path;
    // Layers kept on GPUs: the last ones, the output counting as one more. -1: all that fit; 0: no
    // device is used at all. None: 0 if SessionOptions::exact is on and no device is named, else
    // -1.
    std::optional<int> n_gpu_layers;
    // How many of these layers each device gets, in proportion to each other; in the order of
    // list_devices() or `device`. None: in proportion to free memory, or as they fit. If given,
    // nothing is settled by what fits.
    std::vector<float> tensor_split;
    // Layers, the first ones, whose experts' weights stay in main memory in any case. None: of as
    // few as possible, if n_gpu_layers is -1 or none and not all layers fit; else 0.
    std::optional<int> n_cpu_moe;
    // Names of the GPUs that hold these layers, as list_devices() gives them, separated by commas;
    // "none": no device is used at all; "": all.
    std::string device;
    // llama.cpp RPC servers, "host:port,host:port", whose devices hold these layers, too; "": none.
    // Their devices come before this machine's GPUs, and layers are divided by free memory. The
    // traffic is neither authenticated nor encrypted, and the process ends if a server is lost
    // (docs/rpc.md).
    std::string rpc;
    // What is added to the weights. A session with adapters is never exact.
    std::vector<LoraAdapter> lora;
    // How weights get into main memory: mmap (mapped from the file), none (read from it), mlock
    // (and locked, so that the system never swaps them out), mmap+mlock, dio (read without the
    // system's cache), or auto: mapped, unless a device does not support that.
    std::string load_mode = "auto";
};

// How positions are turned, for contexts longer than a model was trained with. What is left out is
// as the model's file says.
struct RopeOptions {
    // "none", "linear" or "yarn" (Peng et al., "YaRN", 2023).
    std::optional<std::string> scaling;
    // By how much the context is stretched, 0.001 to 1000.
    std::optional<double> scale;
    // Base of the frequencies, 1 to 10^12.
    std::optional<double> freq_base;
    // For yarn: tokens of context that the model was trained with.
    std::optional<int> yarn_orig_ctx;
};

struct ContextOptions {
    // Most tokens of a request, prompt and generation together; 0: the smaller of the trained
    // context and 8192, or what fits in memory if that is less.
    int n_ctx = 0;
    // Requests served at once, 1 to 64.
    int n_seq = 1;
    // Most tokens decoded at once, n_seq to 8192; also the size of a prefill chunk.
    int n_batch = 512;
    // 0: one per performance core.
    int n_threads = 0;
    // automatic: on where the device has it, except on a CPU for heads with which it is much slower
    // (device/attention.h).
    Switch flash_attn = Switch::automatic;
    // Type of the KV memory: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl; or two of
    // these, of keys and of values, such as q8_0/q5_1. None: bf16/f16 if SessionOptions::exact is
    // on, else f16.
    std::optional<std::string> kv_type;
    RopeOptions rope;
};

// A second GGUF that drafts for the target: a smaller model, an EAGLE-3 head or an assistant of
// Gemma 4. It must have the target's vocabulary.
struct DraftModelOptions {
    ModelOptions model;
    // Use the layers of multi-token prediction in the target's own file instead; see brings_head.
    bool mtp = false;
    // n_ctx, n_seq, n_batch and rope are replaced by the target's.
    ContextOptions context;
    // A draft ends before a token whose probability by the draft model is less than this; 0: off.
    // (With rejection, the probability of the likeliest token counts, not of the one drawn.)
    double p_min = 0;
    // How the draft model's tokens are chosen; none: as the target's.
    std::optional<double> temperature;
    std::optional<int> top_k;
    std::optional<double> top_p;
    std::optional<double> min_p;
};

// Options of the n-gram predictor and of the drafter built on it.
struct NGramOptions {
    // Longest n-gram, 2 to 8: a context has up to max_order - 1 tokens.
    int max_order = 4;
    // Only counts of the last `window` tokens are kept; 0: of all tokens.
    int window = 0;
    // Most bytes of the frequency tables; the oldest contexts are dropped first. To find matches,
    // the drafter also keeps the text and a reference text, each within the same bound.
    std::size_t max_bytes = std::size_t{64} << 20;
    // Above temperature 0, draw draft tokens from the relative frequencies instead of taking the
    // most frequent one. With rejection, more of them are accepted that way.
    bool draw = false;
};

// Called with the fraction done, 0 to 1. Returning false cancels with Interrupted; what it throws
// is passed on.
using ProgressFunction = std::function<bool(float)>;

struct SessionOptions {
    ModelOptions model;
    ContextOptions context;
    // Most tokens drafted per round, 1 to kMaxSpecLength. None: as many as pay, given the measured
    // time of decodes and the acceptance seen so far.
    std::optional<int> spec_length;
    // Most guesses at a position that are verified at once, 1 to kMaxGuesses; a fixed spec_length
    // times this is kMaxSpecLength at most. With a fixed spec_length all guesses are verified,
    // otherwise those that pay. 1 or none: drafts are chains, since trees have not been seen to
    // save any time. (Drafts are also chains where the memory cannot hold several guesses:
    // recurrent and hybrid models, sliding windows, several requests with memories of their own.)
    std::optional<int> spec_tree;
    // Drafts in addition to the drafter that the session is given; with a fixed spec_length and no
    // trees, in its place.
    std::optional<DraftModelOptions> draft_model;
    // The n-gram drafter: proposes what followed the same tokens earlier in the sequence or in its
    // reference text, by frequency or as a copy. With a draft model: as the session's own drafter.
    std::optional<NGramOptions> ngram;
    // Path of a corpus file of the model's vocabulary; "": none. Drafts from it are used, too,
    // except beside a draft model with a fixed spec_length and no trees.
    std::string corpus;
    // Whether the session is laid out for verifying drafts though it may have no drafter: for
    // requests that bring theirs (GenerateOptions::draft).
    bool verifies = false;
    // MiB of main memory for copies of what earlier requests left in the KV memory, which later
    // prompts that begin alike go on from; 0: none, -1: no limit. Whatever it is, the copies take
    // at most half of the memory that is free without them (of all memory on macOS).
    int cache_ram = 0;
    // Whether speculative and plain decoding must give exactly the same tokens; otherwise they may
    // differ where two tokens are nearly tied. automatic: exact if that costs nothing beyond what
    // the other options ask for (the list is in device/exact.h). on: a session that cannot be exact
    // is refused, with the reason.
    Switch exact = Switch::automatic;
    ProgressFunction load_progress;
};

// Which draft tokens are accepted.
enum class AcceptanceRule {
    // A draft token is accepted if the target chooses the same. The output does not depend on the
    // drafter.
    coupled,
    // Speculative sampling: a draft token is accepted with probability min(1, p / q), where p and q
    // are its probabilities by the target and by the drafter. That accepts more. The output has the
    // target's distribution, but the text that a seed gives depends on the drafter.
    rejection,
};

// How SamplingOptions::grammar is written. All but gbnf are llguidance's, which is there only in a
// process with Python.
enum class GrammarSyntax {
    gbnf,         // llama.cpp's; its rule `root` is the whole text, and it has no triggers
    lark,         // llguidance's variant of Lark; its rule `start` is the whole text
    regex,        // a regular expression of the whole text, as Rust's crate regex has them
    json_schema,  // a JSON schema, as JSON
};

// How a token is chosen from the target's logits. The steps come in this order: bias, penalties,
// DRY, grammar, top_n_sigma, top_k, typical_p, top_p, min_p, XTC, temperature.
struct SamplingOptions {
    // 0: always the most likely token. The higher, the more often less likely tokens are chosen.
    double temperature = 0;
    // Only tokens whose logits are at most this many standard deviations of all logits below the
    // highest one (Tang et al., "Top-n-sigma", 2024); 0 or less: off.
    double top_n_sigma = 0;
    // Only the k most likely tokens; 0 or -1: off.
    int top_k = 0;
    // Only the tokens whose information (-log p) is nearest to the average, of together this
    // probability (Meister et al., "Locally typical sampling", 2023); 1: off.
    double typical_p = 1;
    // Only the most likely tokens whose probabilities add up to this; 1: off.
    double top_p = 1;
    // Only tokens at least this fraction as likely as the most likely one; 0: off.
    double min_p = 0;
    // XTC, "exclude top choices": at each position, with this probability, of the tokens at least
    // xtc_threshold likely only the least likely one is kept; 0: off. (By p-e-w,
    // text-generation-webui, pull request 6335, 2024.)
    double xtc_probability = 0;
    double xtc_threshold = 0.1;
    // Penalties for tokens that occur in the last penalty_last_n tokens, prompt included (-1: all,
    // 0: off). repeat_penalty (1: off) divides a positive logit and multiplies a negative one. Then
    // the logit is lowered by frequency_penalty per occurrence and by presence_penalty once (0:
    // off).
    double repeat_penalty = 1;
    double frequency_penalty = 0;
    double presence_penalty = 0;
    int penalty_last_n = 64;
    // DRY, "don't repeat yourself": a token that would lengthen a repetition of `length` tokens,
    // dry_allowed_length or more of them, loses dry_multiplier * dry_base ^ (length -
    // dry_allowed_length); multiplier 0: off. What lies before one of the breakers is not compared.
    // dry_penalty_last_n: how many tokens are looked at, the prompt's included (-1: all, 0: off).
    double dry_multiplier = 0;
    double dry_base = 1.75;
    int dry_allowed_length = 2;
    int dry_penalty_last_n = 64;
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    // Added to the logits of these tokens; -infinity forbids a token.
    std::vector<std::pair<Token, float>> logit_bias;
    // Whether tokens that end a text are forbidden, too.
    bool ignore_eos = false;
    // Number of likeliest tokens whose log-probabilities are given at each position, beside that of
    // the token itself, 0 to 100; -1: none. They are those of the model's own distribution, or,
    // with processed_logprobs, of what the steps above make of it.
    int logprobs = -1;
    bool processed_logprobs = false;
    // The same seed gives the same tokens, whoever drafts (with the coupled rule). None: a fresh
    // seed, reported in Stats.
    std::optional<std::uint64_t> seed;
    AcceptanceRule acceptance = AcceptanceRule::coupled;
    // For rejection; more than 0, 1: off. Below 1, draft tokens are accepted more often than p / q,
    // and the output no longer has the target's distribution: a token's probability may rise to p /
    // lenience, if drafts are chains. (At temperature 0, a draft token is accepted if it is at
    // least this fraction as likely as the likeliest.)
    double lenience = 1;
    // Grammar that the output must follow; "": none. (It is asked about the chosen token first, and
    // masks all tokens only if it forbids that one. With rejection it always masks them.)
    std::string grammar;
    GrammarSyntax grammar_syntax = GrammarSyntax::gbnf;
    // Trigger texts: the output is free until the first of them occurs, and follows the grammar
    // from the beginning of that text on. A text is no trigger if the rest of the token in which it
    // ends does not fit the grammar. None: the grammar holds from the start.
    std::vector<std::string> grammar_triggers;
    // Most tokens of the thought with which a text may begin; -1: any number. After these the
    // tokens of reasoning_closing are all that may come, unless a grammar has begun or logit_bias
    // forbids them. opening, closing: the texts around a thought. opening "": the prompt has begun
    // it; closing "": the model has no thoughts.
    int reasoning_budget = -1;
    std::string reasoning_opening;
    std::string reasoning_closing;
};

// A draft that a request brings.
struct RequestDraft {
    std::vector<Token> tokens;
    // Alternatives to a part of `tokens`: after how many of them each begins, and the token ids, at
    // least one, that may follow there.
    std::vector<std::pair<int, std::vector<Token>>> branches;
};

struct GenerateOptions {
    // Most tokens to generate; the context must have room for them. -1: until the context is full.
    // None: 256, or until the context is full.
    std::optional<int> max_tokens;
    // Stop strings, none empty: the text ends before the first that occurs in it.
    std::vector<std::string> stop;
    SamplingOptions sampling;
    // Text that the n-gram drafter may copy from besides prompt and generation: the file being
    // edited, retrieved documents. It is not part of the prompt and changes the output no more than
    // any drafter does.
    std::vector<Token> reference;
    // For measurements: the work is done as always, but these tokens are taken to be the target's
    // choices. The generation ends with the last of them.
    std::vector<Token> replayed;
    // Tokens that an earlier request with the same prompt, options and seed generated before it
    // broke off. The generation continues behind them as that request would have.
    std::vector<Token> generated;
    // Whether what the memory holds of such a prompt is used; if not, all of it is decoded.
    bool cache_prompt = true;
    // A draft to verify. The generation is then one round, which verifies as much of it as the
    // session can verify at once, and ends without a reason unless the text ends; `generated`
    // continues it. Only a text that the memory holds from an earlier request has its draft
    // verified; any other has its prompt decoded, and gets one token.
    std::optional<RequestDraft> draft;
    // Whether Stream::trace records what every round did.
    bool trace = false;
};

}  // namespace specllama
