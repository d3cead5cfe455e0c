#include "session/request_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "sample/sampler.h"
#include "specllama/error.h"
#include "text/utf8.h"

namespace specllama {

namespace {

void check_stop_strings(const std::vector<std::string>& stop) {
    for (const std::string& one : stop) {
        if (one.empty()) throw InvalidArgument("A stop string is empty; leave it out.");
        if (find_invalid_utf8(one) != std::string::npos)
            throw InvalidArgument("A stop string is not valid UTF-8.");
    }
}

void check_options(const GenerateOptions& options, int n_room) {
    const int max_tokens = options.max_tokens.value_or(-1);
    const std::size_t most = max_tokens >= 0 ? max_tokens : n_room;
    if (options.generated.size() > most)
        throw InvalidArgument("What was generated has " + std::to_string(options.generated.size()) +
                              " tokens, more than the " + std::to_string(most) +
                              " that there may be.");
    if (max_tokens < -1)
        throw InvalidArgument(
            "max_tokens must be 0 or more, or -1 for as many as the context holds, not " +
            std::to_string(max_tokens) + ".");
    if (max_tokens > n_room)
        throw InvalidArgument("max_tokens is " + std::to_string(max_tokens) +
                              ", but behind the prompt the context has room for " +
                              std::to_string(n_room) + "; lower it, or raise n_ctx.");
    if (!options.replayed.empty() && !options.sampling.grammar.empty())
        throw InvalidArgument(
            "A text that is replayed follows no grammar; leave one of the two out.");
    check_stop_strings(options.stop);
    specllama::check_options(options);
}

void check_message_ends(const std::vector<int>& ends, int n_prompt) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const int least = i == 0 ? 1 : ends[i - 1] + 1;
        if (ends[i] < least || ends[i] > n_prompt)
            throw InvalidArgument("message_ends has " + std::to_string(ends[i]) +
                                  " where a number from " + std::to_string(least) + " to " +
                                  std::to_string(n_prompt) +
                                  ", the tokens of the prompt, must be; give them in order.");
    }
}

void check_draft(const RequestDraft& draft, const Vocabulary& vocab) {
    vocab.check(draft.tokens, "draft");
    for (const auto& [depth, branch] : draft.branches) {
        vocab.check(branch, "branches");
        if (branch.empty()) throw InvalidArgument("A branch of the draft is empty; leave it out.");
        if (depth < 0 || depth > static_cast<int>(draft.tokens.size()))
            throw InvalidArgument("A branch leaves the draft after 0 to " +
                                  std::to_string(draft.tokens.size()) +
                                  " of its tokens, not after " + std::to_string(depth) + ".");
    }
}

}  // namespace

void check_prompt(TokenSpan prompt, const Vocabulary& vocab, int n_ctx) {
    if (prompt.empty()) throw InvalidArgument("The prompt is empty; give at least one token.");
    vocab.check(prompt, "prompt");
    if (prompt.size() >= static_cast<std::size_t>(n_ctx))
        throw InvalidArgument("The prompt has " + std::to_string(prompt.size()) +
                              " tokens, which leaves no room in a context of " +
                              std::to_string(n_ctx) + "; shorten it or raise n_ctx.");
}

void check_request(TokenSpan prompt, const GenerateOptions& options, const Vocabulary& vocab,
                   int n_ctx) {
    check_prompt(prompt, vocab, n_ctx);
    vocab.check(options.reference, "reference");
    vocab.check(options.replayed, "replayed text");
    vocab.check(options.generated, "generated text");
    if (options.draft) check_draft(*options.draft, vocab);
    const auto n_prompt = static_cast<int>(prompt.size());
    check_options(options, n_ctx - n_prompt);
    check_message_ends(options.message_ends, n_prompt);
    check(options.sampling, vocab.size());
}

void check_remote(const GenerateOptions& options) {
    if (options.sampling.acceptance == AcceptanceRule::rejection)
        refuse_remote("acceptance=\"rejection\"");
    if (!options.replayed.empty()) refuse_remote("replay");
}

void refuse_remote(const std::string& what) {
    throw InvalidArgument(what +
                          " needs the model in this process, but the target is on a server; open "
                          "the session with the model's file.");
}

void check_search(TokenSpan prompt, const BeamOptions& options, const Vocabulary& vocab,
                  int n_ctx) {
    check_prompt(prompt, vocab, n_ctx);
    vocab.check(options.reference, "reference");
    check_stop_strings(options.stop);
}

}  // namespace specllama
