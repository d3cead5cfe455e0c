#include "session/request_check.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "sample/sampler.h"
#include "specllama/error.h"
#include "text/utf8.h"
#include "vision/media_chunk.h"

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
        throw InvalidArgument("`generated` has " + std::to_string(options.generated.size()) +
                              " tokens, but at most " + std::to_string(most) +
                              " are possible here.");
    if (max_tokens < -1)
        throw InvalidArgument(
            "max_tokens must be 0 or more, or -1 for as many as the context holds, not " +
            std::to_string(max_tokens) + ".");
    if (max_tokens > n_room)
        throw InvalidArgument("max_tokens is " + std::to_string(max_tokens) +
                              ", but after the prompt the context has room for " +
                              std::to_string(n_room) + " tokens; lower it, or raise n_ctx.");
    if (!options.replayed.empty() && !options.sampling.grammar.empty())
        throw InvalidArgument("A replayed text cannot follow a grammar; leave one of the two out.");
    check_stop_strings(options.stop);
    specllama::check_options(options);
}

void check_message_ends(const std::vector<int>& ends, int n_prompt) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const int least = i == 0 ? 1 : ends[i - 1] + 1;
        if (ends[i] < least || ends[i] > n_prompt)
            throw InvalidArgument("message_ends has " + std::to_string(ends[i]) +
                                  ", but the number there must be from " + std::to_string(least) +
                                  " to " + std::to_string(n_prompt) +
                                  " (the number of prompt tokens); give them in order.");
    }
}

void check_draft(const RequestDraft& draft, const Vocabulary& vocab) {
    vocab.check(draft.tokens, "draft");
    for (const auto& [depth, branch] : draft.branches) {
        vocab.check(branch, "branches");
        if (branch.empty()) throw InvalidArgument("A branch of the draft is empty; leave it out.");
        if (depth < 0 || depth > static_cast<int>(draft.tokens.size()))
            throw InvalidArgument("A branch must leave the draft after 0 to " +
                                  std::to_string(draft.tokens.size()) +
                                  " of its tokens, not after " + std::to_string(depth) + ".");
    }
}

// Checks the tokens of a prompt; returns the rows that they take. Each chunk's ids must come once,
// complete and in order.
std::size_t count_rows(TokenSpan prompt, const Vocabulary& vocab, const MediaChunks& media) {
    if (media.empty()) {
        vocab.check(prompt, "prompt");
        return prompt.size();
    }
    std::size_t n_rows = 0;
    std::size_t n_chunks = 0;
    for (TokenSpan rest = prompt; !rest.empty();) {
        const bool known = is_media(rest.front()) && n_chunks < media.size();
        const TokenSpan ids = known ? media[n_chunks]->ids() : TokenSpan();
        if (known && ids.size() <= rest.size() && std::ranges::equal(rest.first(ids.size()), ids)) {
            rest = rest.subspan(ids.size());
            n_rows += media[n_chunks++]->n_rows();
            continue;
        }
        vocab.check(rest.first(1), "prompt");
        rest = rest.subspan(1);
        ++n_rows;
    }
    if (n_chunks < media.size())
        throw InvalidArgument("The prompt has " + std::to_string(n_chunks) + " of its " +
                              std::to_string(media.size()) +
                              " images and sounds; pass it unchanged.");
    return n_rows;
}

}  // namespace

void check_saved(TokenSpan tokens, const Vocabulary& vocab, int n_ctx) {
    std::vector<Token> text;
    std::ranges::copy_if(tokens, std::back_inserter(text),
                         [](Token one) { return !is_media(one); });
    check_prompt(text, vocab, n_ctx);
    bool open = false;
    for (const Token token : tokens) {
        if (is_media(token) && !begins_media(token) && !open)
            throw InvalidArgument("The state is damaged: it has only a part of an image.");
        open = is_media(token);
    }
}

void check_prompt(TokenSpan prompt, const Vocabulary& vocab, int n_ctx, const MediaChunks& media) {
    if (prompt.empty()) throw InvalidArgument("The prompt is empty; give at least one token.");
    const std::size_t n_rows = count_rows(prompt, vocab, media);
    if (is_media(prompt.back()))
        throw InvalidArgument(
            "The prompt ends with an image or a sound; give a text after it, which the model "
            "continues.");
    if (n_rows >= static_cast<std::size_t>(n_ctx))
        throw InvalidArgument("The prompt has " + std::to_string(n_rows) +
                              " tokens, which leaves no room in a context of " +
                              std::to_string(n_ctx) + "; shorten it or raise n_ctx.");
}

void check_request(TokenSpan prompt, const MediaChunks& media, const GenerateOptions& options,
                   const Vocabulary& vocab, int n_ctx) {
    check_prompt(prompt, vocab, n_ctx, media);
    vocab.check(options.reference, "reference");
    vocab.check(options.replayed, "replayed text");
    vocab.check(options.generated, "generated text");
    if (options.draft) check_draft(*options.draft, vocab);
    const auto n_prompt = static_cast<int>(prompt.size());
    check_options(options, n_ctx - static_cast<int>(count_rows(prompt, vocab, media)));
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
