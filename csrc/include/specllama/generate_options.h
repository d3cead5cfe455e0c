#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "specllama/option.h"
#include "specllama/sampling_options.h"
#include "specllama/types.h"

namespace specllama {

// Options of a generation. The table below each struct has each option's effect, range and special
// values.

// The drafters of the session that may draft for a request. automatic: all. model: those whose
// tokens each take a step of a model (draft models and heads). ngram: those that copy (n-grams,
// matches, a corpus). Tokens that a grammar forces are drafted with all but `none`.
enum class SpecType { automatic, none, model, ngram };

// A draft that comes with a request.
struct RequestDraft {
    std::vector<Token> tokens;
    // Alternatives to parts of `tokens`: the number of tokens before each, and its token ids (at
    // least one).
    std::vector<std::pair<int, std::vector<Token>>> branches;
};

struct GenerateOptions {
    // None: 256, or until the context is full. -1: until it is full.
    std::optional<int> max_tokens;
    std::vector<std::string> stop;
    SamplingOptions sampling;
    std::vector<Token> reference;
    // For measurements: all work is done as usual, but these tokens replace the target's choices.
    // The generation ends with the last of them.
    std::vector<Token> replayed;
    // Tokens that an earlier request with the same prompt, options and seed generated before it
    // broke off. The generation continues after them as that request would have.
    std::vector<Token> generated;
    bool cache_prompt = true;
    int id_slot = -1;
    // Numbers of prompt tokens after which a message ends, in order; empty: after each token that
    // ends a message.
    std::vector<int> message_ends;
    // None: the session's.
    std::optional<int> spec_length;
    SpecType spec_type = SpecType::automatic;
    bool remember = true;
    // Owner of the request (0 or more). A request drafts only from earlier ones of the same owner.
    int memory_owner = 0;
    // A draft to verify. The generation is then one round, which verifies as much of the draft as
    // the session can verify at once. Its finish_reason is `none` unless the text ends. `generated`
    // continues it in another request. If the KV memory does not hold the text from an earlier
    // request, the draft is not verified: the prompt is decoded, and one token is generated.
    std::optional<RequestDraft> draft;
    bool trace = false;
};

template <typename Visit>
void list_options(const GenerateOptions*, Visit&& option) {
    using Options = GenerateOptions;
    option(&Options::max_tokens,
           {.name = "max_tokens",
            .help = "Maximum number of tokens to generate. The context must have room for them.",
            .low = -1,
            .special = "-1: until the context is full",
            .unset = "256, or until the context is full",
            .flags = "-n --n-predict --predict",
            .aliases = "max_new_tokens n_predict"});
    option(&Options::stop, {.name = "stop",
                            .help = "Stop before any of these texts.",
                            .unset = "none",
                            .flags = "-r --stop",
                            .value = "TEXT"});
    option(&Options::sampling);
    option(&Options::reference,
           {.name = "reference",
            .help = "Text, or token ids, that the n-gram drafter may copy from. For example the "
                    "file being edited, or retrieved documents, besides prompt and generation. It "
                    "is not part of the prompt. It changes the speed, not the output.",
            .unset = "none"});
    option(&Options::replayed, {.name = "replayed"});
    option(&Options::generated, {.name = "generated"});
    option(
        &Options::cache_prompt,
        {.name = "cache_prompt",
         .help = "Reuse the part of the prompt that the KV memory holds. Unless the session is "
                 "exact, the length of that part may change rounding, and thus the text of a seed.",
         .field = "cache_prompt"});
    option(&Options::id_slot, {.name = "id_slot",
                               .help = "Slot of the KV memory for the request, which waits until "
                                       "the slot is free. `Stats.slot` is the slot used.",
                               .low = -1,
                               .special = "-1: the best free slot",
                               .field = "id_slot"});
    option(
        &Options::message_ends,
        {.name = "message_ends",
         .help = "Numbers of prompt tokens after which a message ends, in order. Checkpoints are "
                 "made there (`ctx_checkpoints`).",
         .unset = "after each token that ends a message"});
    option(&Options::spec_length,
           {.name = "spec_length",
            .help = "Maximum number of tokens drafted per round for this request.",
            .low = 0,
            .special = "0: no speculation",
            .unset = "the session's",
            .field = "speculative.n_max"});
    option(&Options::spec_type,
           {.name = "spec_type",
            .help = "Drafters used for this request. model: a draft model or head; ngram: copies "
                    "of n-grams, matches and a corpus; none: plain decoding. Tokens that a grammar "
                    "forces are drafted with all but none.",
            .choices = "auto none model ngram",
            .field = "speculative.type"});
    option(&Options::remember,
           {.name = "remember",
            .help = "Draft from earlier requests of the session, and keep prompt and output for "
                    "later ones to draft from. No effect unless the session has a `memory`. The "
                    "output is the same either way.",
            .field = "store"});
    option(&Options::memory_owner, {.name = "memory_owner", .low = 0});
    option(&Options::draft, {.name = "draft"});
    option(&Options::trace,
           {.name = "trace", .help = "Record what every round did, in `Generation.trace`."});
}

}  // namespace specllama
