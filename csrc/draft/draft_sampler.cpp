#include "draft/draft_sampler.h"

#include <string>

#include "specllama/error.h"

namespace specllama {

Sampler draft_sampler(const Sampler& target, const DraftModelOptions& draft, std::size_t n_vocab) {
    SamplingOptions options = target.options();
    options.temperature = draft.temperature.value_or(options.temperature);
    options.top_k = draft.top_k.value_or(options.top_k);
    options.top_p = draft.top_p.value_or(options.top_p);
    options.min_p = draft.min_p.value_or(options.min_p);
    options.logprobs = -1;
    options.processed_logprobs = false;
    options.grammar.clear();
    options.grammar_triggers.clear();
    return {options, n_vocab};
}

void check_draft_options(const DraftModelOptions& options, std::size_t n_vocab) {
    if (!(options.p_min >= 0 && options.p_min <= 1))
        throw InvalidArgument("draft_p_min must be from 0 (off) to 1, not " +
                              std::to_string(options.p_min) + ".");
    try {
        draft_sampler(Sampler({}, 1), options, n_vocab);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(std::string("draft_") + error.what());
    }
}

}  // namespace specllama
