#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "specllama/option.h"
#include "specllama/sampling_options.h"
#include "specllama/types.h"

namespace specllama {

// Options of a generation. The table below each struct says what each option
// does, its range and what is special about some values.

// Which drafters of the session may draft for a request: those whose tokens each take a step of a
// model (draft models and heads), those that copy (n-grams, matches, a corpus), all, or none. What
// a grammar forces is drafted unless none may.
enum class SpecType { automatic, none, model, ngram };

// A draft that a request brings.
struct RequestDraft {
    std::vector<Token> tokens;
    // Alternatives to a part of `tokens`: after how many of them each begins, and the token ids, at
    // least one, that may follow there.
    std::vector<std::pair<int, std::vector<Token>>> branches;
};

struct GenerateOptions {
    // None: 256, or until the context is full. -1: until it is full.
    std::optional<int> max_tokens;
    std::vector<std::string> stop;
    SamplingOptions sampling;
    std::vector<Token> reference;
    // For measurements: the work is done as always, but these tokens are taken to be the target's
    // choices. The generation ends with the last of them.
    std::vector<Token> replayed;
    // Tokens that an earlier request with the same prompt, options and seed generated before it
    // broke off. The generation continues after them as that request would have.
    std::vector<Token> generated;
    bool cache_prompt = true;
    int id_slot = -1;
    // Sizes at which messages of the prompt end, in order; empty: after each token that ends a
    // message.
    std::vector<int> message_ends;
    // None: as many as the session drafts.
    std::optional<int> spec_length;
    SpecType spec_type = SpecType::automatic;
    bool remember = true;
    // Whose request it is: requests draft only from earlier ones of the same owner. 0 or more.
    int memory_owner = 0;
    // A draft to verify. The generation is then one round, which verifies as much of it as the
    // session can verify at once, and ends without a reason unless the text ends; `generated`
    // continues it. Only a text that the memory holds from an earlier request has its draft
    // verified; any other has its prompt decoded, and gets one token.
    std::optional<RequestDraft> draft;
    bool trace = false;
};

template <typename Visit>
void list_options(const GenerateOptions*, Visit&& option) {
    using Options = GenerateOptions;
    option(&Options::max_tokens,
           {.name = "max_tokens",
            .help = "Most tokens to generate. The context must have room for them.",
            .low = -1,
            .special = "-1: until the context is full",
            .unset = "256, or until the context is full",
            .flags = "-n --n-predict --predict",
            .aliases = "max_new_tokens n_predict"});
    option(&Options::stop, {.name = "stop",
                            .help = "Texts before the first of which the generation ends.",
                            .unset = "none",
                            .flags = "-r --stop",
                            .value = "TEXT"});
    option(&Options::sampling);
    option(&Options::reference,
           {.name = "reference",
            .help = "Text, or token ids, that the n-gram drafter may copy from. For example the "
                    "file being edited, or retrieved documents, besides prompt and generation. It "
                    "is no part of the prompt; it changes the speed, not the text, as drafters do.",
            .unset = "none"});
    option(&Options::replayed, {.name = "replayed"});
    option(&Options::generated, {.name = "generated"});
    option(&Options::cache_prompt,
           {.name = "cache_prompt",
            .help = "Use what the memory holds of the prompt instead of decoding all of it. How "
                    "much that is may change how sums are rounded, unless the session is exact, "
                    "and with that the text of a seed.",
            .field = "cache_prompt"});
    option(&Options::id_slot,
           {.name = "id_slot",
            .help = "Slot of the memory that the request gets; it waits until that one is free. "
                    "`Stats.slot` is the one that it got.",
            .low = -1,
            .special = "-1: the best one that is free",
            .field = "id_slot"});
    option(
        &Options::message_ends,
        {.name = "message_ends",
         .help = "Numbers of prompt tokens after which a message ends, in order. Checkpoints are "
                 "made there (`ctx_checkpoints`).",
         .unset = "after each token that ends a message"});
    option(&Options::spec_length, {.name = "spec_length",
                                   .help = "Most tokens drafted per round for this request.",
                                   .low = 0,
                                   .special = "0: plain decoding",
                                   .unset = "as many as the session drafts",
                                   .field = "speculative.n_max"});
    option(
        &Options::spec_type,
        {.name = "spec_type",
         .help = "Drafters used for this request. model: a draft model or head; ngram: copies of "
                 "n-grams, matches and a corpus; none: plain decoding. What a grammar forces is "
                 "drafted with all but none.",
         .choices = "auto none model ngram",
         .field = "speculative.type"});
    option(&Options::remember,
           {.name = "remember",
            .help = "Draft from earlier requests of the session, and keep prompt and output for "
                    "later ones to draft from. Without effect unless the session has a `memory`. "
                    "The output is the same either way.",
            .field = "store"});
    option(&Options::memory_owner, {.name = "memory_owner", .low = 0});
    option(&Options::draft, {.name = "draft"});
    option(&Options::trace,
           {.name = "trace", .help = "Record what every round did, in `Generation.trace`."});
}

}  // namespace specllama
