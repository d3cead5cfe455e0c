#include "beam/continuations.h"

#include <algorithm>
#include <string>

#include "engine/clock.h"
#include "specllama/error.h"

namespace specllama {

Continuations::Continuations(std::span<const std::shared_ptr<Drafter>> drafters, const Trie& trie,
                             Sequence& request, SequenceId id, TokenSpan reference, int n_vocab)
    : trie_(trie), request_(request), id_(id), n_vocab_(n_vocab) {
    const TokenSpan prompt = request.tokens();
    text_.assign(prompt.begin(), prompt.end());
    for (const auto& drafter : drafters)
        if (!drafter->costly()) drafters_.push_back(drafter.get());
    for (Drafter* drafter : drafters_) contained([&] { drafter->begin(id_, prompt, reference); });
}

Continuations::~Continuations() {
    try {
        for (Drafter* drafter : drafters_) contained([&] { drafter->end(id_); });
    } catch (...) {
        // What else a drafter throws at its end concerns nobody any more.
    }
}

template <typename Call>
void Continuations::contained(Call call) {
    const Timer timer(request_.stats.seconds.draft);
    try {
        call();
    } catch (const Error& error) {
        ++request_.stats.drafter_errors;
        request_.stats.last_drafter_error = error.what();
    }
}

void Continuations::follow(std::span<const Hypothesis> running) {
    NodeId stem = running.front().node;
    for (const Hypothesis& one : running) stem = trie_.common(stem, one.node);
    trie_.append_path(stem_, stem, text_);
    stem_ = stem;
}

void Continuations::guess(NodeId node, int n, std::vector<Outlook::Guessed>& tokens) {
    tokens.clear();
    behind_.clear();
    trie_.append_path(stem_, node, behind_);
    const auto n_behind = static_cast<std::ptrdiff_t>(behind_.size());
    for (Drafter* drafter : drafters_) {
        proposal_.sequence = id_;
        proposal_.tokens = text_;
        proposal_.max_tokens = static_cast<int>(n_behind) + n;
        proposal_.sampler = &request_.sampler();
        proposal_.error.clear();
        proposal_.draft.clear();
        for (const Token token : behind_) proposal_.draft.push(token, {});
        contained([&] {
            drafter->propose({&proposal_, 1});
            if (!proposal_.error.empty()) throw DrafterError(proposal_.error);
            const TokenSpan proposed = proposal_.draft.tokens;
            const bool fits =
                proposal_.draft.whole() && std::ssize(proposed) <= proposal_.max_tokens &&
                std::ssize(proposed) >= n_behind && std::ranges::all_of(proposed, [&](Token token) {
                    return token >= 0 && token < n_vocab_;
                });
            if (!fits)
                throw DrafterError(
                    "The drafter proposed tokens that the model does not have, or more than were "
                    "asked for, or some without evidence.");
            for (auto i = n_behind; i < std::ssize(proposed); ++i)
                tokens.push_back({proposed[i], proposal_.draft.evidence[i].source});
        });
        if (!tokens.empty()) return;
    }
}

}  // namespace specllama
