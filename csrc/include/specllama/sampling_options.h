#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "specllama/option.h"
#include "specllama/types.h"

namespace specllama {

// How tokens are chosen. The table below each struct has each option's effect, range and special
// values.

// Which draft tokens are accepted.
enum class AcceptanceRule {
    // A draft token is accepted if the target chooses the same. The output does not depend on the
    // drafter.
    coupled,
    // Speculative sampling: a draft token is accepted with probability min(1, p / q), where p and q
    // are its probabilities by the target and by the drafter. This accepts more tokens. The output
    // has the target's distribution, but the text of a seed depends on the drafter.
    rejection,
};

// Syntax of SamplingOptions::grammar. All except gbnf need llguidance, which only a Python process
// has.
enum class GrammarSyntax {
    gbnf,         // llama.cpp's; the rule `root` is the whole text; without triggers
    lark,         // llguidance's variant of Lark; the rule `start` is the whole text
    regex,        // a regular expression of the whole text, in the syntax of Rust's regex crate
    json_schema,  // a JSON schema, as JSON
};

// How a token is chosen from the target's logits. The steps come in this order: bias, penalties,
// DRY, grammar, top_n_sigma, top_k, typical_p, top_p, min_p, XTC, temperature.
struct SamplingOptions {
    double temperature = 0;
    double top_n_sigma = 0;
    int top_k = 0;
    double typical_p = 1;
    double top_p = 1;
    double min_p = 0;
    double xtc_probability = 0;
    double xtc_threshold = 0.1;
    double repeat_penalty = 1;
    double frequency_penalty = 0;
    double presence_penalty = 0;
    int repeat_last_n = 64;
    double dry_multiplier = 0;
    double dry_base = 1.75;
    int dry_allowed_length = 2;
    int dry_penalty_last_n = 64;
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    std::vector<std::pair<Token, float>> logit_bias;
    bool ignore_eos = false;
    int logprobs = -1;
    bool processed_logprobs = false;
    // None: a fresh seed, reported in Stats.
    std::optional<std::uint64_t> seed;
    AcceptanceRule acceptance = AcceptanceRule::coupled;
    double lenience = 1;
    // "": none. The grammar first checks the chosen token, and masks all tokens only if it forbids
    // that one. With rejection it always masks them.
    std::string grammar;
    GrammarSyntax grammar_syntax = GrammarSyntax::gbnf;
    std::vector<std::string> grammar_triggers;
    int reasoning_budget = -1;
    // The texts that open and close a thought. opening "": the prompt has opened it; closing "":
    // the model has no thoughts.
    std::string reasoning_opening;
    std::string reasoning_closing;
};

template <typename Visit>
void list_options(const SamplingOptions*, Visit&& option) {
    using Options = SamplingOptions;
    option(
        &Options::temperature,
        {.name = "temperature",
         .help =
             "Sampling temperature: higher is more random. 0 always takes the most likely token.",
         .low = 0,
         .special = "0: greedy",
         .flags = "--temp --temperature",
         .value = "T",
         .field = "temperature",
         .aliases = "temp"});
    option(&Options::top_n_sigma,
           {.name = "top_n_sigma",
            .help =
                "Keep the tokens whose logits are at most N standard deviations below the highest. "
                "The deviation is of the logits after the steps before (Tang et al. 2024).",
            .low = -1,
            .special = "0: off",
            .flags = "--top-nsigma --top-n-sigma",
            .field = "top_n_sigma"});
    option(&Options::top_k, {.name = "top_k",
                             .help = "Keep the K most likely tokens.",
                             .low = -1,
                             .special = "0: off; -1: off",
                             .flags = "--top-k",
                             .value = "K",
                             .field = "top_k"});
    option(&Options::typical_p,
           {.name = "typical_p",
            .help = "Locally typical sampling: keep the most typical tokens, with total "
                    "probability P. Typical tokens have nearly average information; the most "
                    "likely token may be left out (Meister et al. 2023).",
            .low = 0,
            .high = 1,
            .special = "1: off",
            .flags = "--typical --typical-p",
            .value = "P",
            .field = "typical_p"});
    option(&Options::top_p, {.name = "top_p",
                             .help = "Nucleus sampling: keep the most likely tokens, with total "
                                     "probability P. At least one token is kept.",
                             .low = 0,
                             .high = 1,
                             .special = "1: off",
                             .flags = "--top-p",
                             .value = "P",
                             .field = "top_p"});
    option(&Options::min_p,
           {.name = "min_p",
            .help = "Keep the tokens that are at least P times as likely as the most likely one.",
            .low = 0,
            .high = 1,
            .special = "0: off",
            .flags = "--min-p",
            .value = "P",
            .field = "min_p"});
    option(&Options::xtc_probability,
           {.name = "xtc_probability",
            .help = "XTC: probability that the top choices are removed. Of the tokens with at "
                    "least the probability xtc_threshold, only the least likely one is then left "
                    "(p-e-w, 2024). Seed and position decide whether they are removed.",
            .low = 0,
            .high = 1,
            .special = "0: off",
            .flags = "--xtc-probability",
            .value = "P",
            .field = "xtc_probability"});
    option(&Options::xtc_threshold,
           {.name = "xtc_threshold",
            .help = "XTC: minimum probability of a top choice; above 0.5 nothing is removed.",
            .low = 0,
            .high = 1,
            .flags = "--xtc-threshold",
            .value = "P",
            .field = "xtc_threshold"});
    option(&Options::repeat_penalty, {.name = "repeat_penalty",
                                      .help = "Repetition penalty: divides the positive and "
                                              "multiplies the negative logits of recent tokens.",
                                      .low = 0,
                                      .above_low = true,
                                      .special = "1: off",
                                      .flags = "--repeat-penalty",
                                      .value = "X",
                                      .field = "repeat_penalty",
                                      .aliases = "repetition_penalty"});
    option(
        &Options::frequency_penalty,
        {.name = "frequency_penalty",
         .help =
             "Frequency penalty: subtracted from the logit of a recent token once per occurrence.",
         .special = "0: off",
         .flags = "--frequency-penalty",
         .value = "X",
         .field = "frequency_penalty"});
    option(&Options::presence_penalty,
           {.name = "presence_penalty",
            .help = "Presence penalty: subtracted once from the logit of a recent token.",
            .special = "0: off",
            .flags = "--presence-penalty",
            .value = "X",
            .field = "presence_penalty"});
    option(&Options::repeat_last_n,
           {.name = "repeat_last_n",
            .help = "Number of recent tokens that these penalties consider, including the prompt.",
            .low = -1,
            .special = "-1: all; 0: off",
            .flags = "--repeat-last-n",
            .field = "repeat_last_n",
            .aliases = "penalty_last_n"});
    option(
        &Options::dry_multiplier,
        {.name = "dry_multiplier",
         .help = "DRY: strength of the penalty on tokens that extend a repetition. DRY, \"don't "
                 "repeat yourself\" (p-e-w, 2024): a token that followed the last `length` tokens "
                 "before loses dry_multiplier * dry_base ** (length - dry_allowed_length).",
         .low = 0,
         .special = "0: off",
         .flags = "--dry-multiplier",
         .value = "X",
         .field = "dry_multiplier"});
    option(&Options::dry_base,
           {.name = "dry_base",
            .help = "DRY: base of the penalty, which grows with the length of the repetition.",
            .low = 1,
            .flags = "--dry-base",
            .value = "X",
            .field = "dry_base"});
    option(&Options::dry_allowed_length,
           {.name = "dry_allowed_length",
            .help = "DRY: length from which a repetition is penalised, in tokens.",
            .low = 1,
            .flags = "--dry-allowed-length",
            .field = "dry_allowed_length"});
    option(&Options::dry_penalty_last_n,
           {.name = "dry_penalty_last_n",
            .help = "DRY: number of recent tokens considered, including the prompt.",
            .low = -1,
            .special = "-1: all; 0: off",
            .flags = "--dry-penalty-last-n",
            .field = "dry_penalty_last_n"});
    option(
        &Options::dry_sequence_breakers,
        {.name = "dry_sequence_breakers",
         .help = "DRY: texts at which a repetition ends. At most 64 texts, each of 1 to 64 bytes.",
         .unset = "newline, colon, quotation mark, asterisk",
         .flags = "--dry-sequence-breaker",
         .value = "TEXT",
         .field = "dry_sequence_breakers"});
    option(&Options::logit_bias,
           {.name = "logit_bias",
            .help = "Numbers added to the logits of token ids; minus infinity forbids a token.",
            .unset = "none",
            .field = "logit_bias"});
    option(&Options::ignore_eos, {.name = "ignore_eos",
                                  .help = "Forbid the tokens that end a text. The text still ends "
                                          "where a grammar allows nothing else.",
                                  .flags = "--ignore-eos",
                                  .field = "ignore_eos"});
    option(&Options::logprobs, {.name = "logprobs",
                                .help = "Return the log-probabilities of each token and of the K "
                                        "most likely tokens at its position.",
                                .low = -1,
                                .high = 100,
                                .special = "-1: none",
                                .unset = "none",
                                .flags = "--logprobs",
                                .value = "K"});
    option(&Options::processed_logprobs,
           {.name = "processed_logprobs",
            .help = "Return log-probabilities after the steps above instead of the model's own."});
    option(&Options::seed, {.name = "seed",
                            .help = "Random seed; the drafter does not change what a seed gives. "
                                    "`Generation.stats.seed` reports it.",
                            .low = -1,
                            .special = "-1: a new one each time",
                            .unset = "a new one each time",
                            .flags = "-s --seed",
                            .field = "seed"});
    option(&Options::acceptance,
           {.name = "acceptance",
            .help = "Rule for accepting drafts above temperature 0; coupled: if the model chooses "
                    "the same token, rejection: with probability p / q, which accepts more. With "
                    "coupled, a seed gives the same tokens with any drafter. With rejection "
                    "(Leviathan et al. 2023, algorithm 1), the output has the same distribution, "
                    "but the text of a seed also depends on the drafter.",
            .choices = "coupled rejection",
            .flags = "--acceptance",
            .value = "RULE"});
    option(&Options::lenience,
           {.name = "lenience",
            .help = "With rejection only: below 1, more drafts are accepted, and the output "
                    "changes. q is scaled by it in the test of p / q: no token comes more often "
                    "than with p / lenience (Leviathan et al. 2023, appendix A.5). At temperature "
                    "0, a draft token at least this fraction as likely as the likeliest is kept.",
            .low = 0,
            .high = 1,
            .above_low = true,
            .special = "1: off",
            .flags = "--lenience",
            .value = "L"});
    option(&Options::grammar,
           {.name = "grammar",
            .help = "Grammar that the output must follow. In GBNF, or in llguidance's Lark, whose "
                    "first line is %llguidance {}. The output may end early by max_tokens or a "
                    "stop string.",
            .unset = "none"});
    option(&Options::grammar_syntax, {.name = "grammar_syntax"});
    option(&Options::grammar_triggers,
           {.name = "grammar_triggers",
            .help = "Texts that start the grammar. It begins with the first of them, that text "
                    "included; anything may precede it. A text does not trigger if the rest of the "
                    "token in which it ends does not fit the grammar. Without triggers, the "
                    "grammar applies from the start.",
            .unset = "none"});
    option(&Options::reasoning_budget,
           {.name = "reasoning_budget",
            .help = "Maximum number of reasoning tokens before the answer. After these comes the "
                    "text that ends a thought, such as \"</think>\". A thought is limited if the "
                    "prompt ends with its opening, or the text begins with it; there is no limit "
                    "where a grammar has begun.",
            .low = -1,
            .special = "-1: unlimited; 0: no reasoning",
            .unset = "unlimited",
            .flags = "--reasoning-budget",
            .field = "reasoning_budget_tokens",
            .aliases = "thinking_budget_tokens"});
    option(&Options::reasoning_opening, {.name = "reasoning_opening"});
    option(&Options::reasoning_closing, {.name = "reasoning_closing"});
}

}  // namespace specllama
