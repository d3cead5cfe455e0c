#include "beam/continuations.h"

#include <string>

#include "engine/proposal_check.h"

namespace specllama {

Continuations::Continuations(std::span<const std::shared_ptr<Drafter>> drafters, const Trie& trie,
                             Sequence& request, SequenceId id, TokenSpan reference,
                             const Vocabulary& vocab)
    : trie_(trie), request_(request), id_(id), vocab_(vocab) {
    const TokenSpan prompt = request.tokens();
    text_.assign(prompt.begin(), prompt.end());
    for (const auto& drafter : drafters)
        if (!drafter->costly()) drafters_.push_back(drafter.get());
    for (Drafter* drafter : drafters_)
        contained(request_, [&] { drafter->begin(id_, prompt, reference); });
}

Continuations::~Continuations() {
    try {
        for (Drafter* drafter : drafters_) contained(request_, [&] { drafter->end(id_); });
    } catch (...) {
        // What else a drafter throws when it is told of the end concerns nobody any more.
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
    const auto n_behind = static_cast<int>(behind_.size());
    for (Drafter* drafter : drafters_) {
        proposal_.sequence = id_;
        proposal_.tokens = text_;
        proposal_.max_tokens = n_behind + n;
        proposal_.sampler = &request_.sampler();
        proposal_.error.clear();
        proposal_.draft.clear();
        for (const Token token : behind_) proposal_.draft.push(token, {});
        contained(request_, [&] {
            drafter->propose({&proposal_, 1});
            const Draft& draft = proposal_.draft;
            std::string wrong = fault(proposal_, vocab_);
            if (wrong.empty() && draft.size() < n_behind)
                wrong = "The drafter took back tokens that it was to go on from.";
            if (!wrong.empty()) throw DrafterError(wrong);
            for (int i = n_behind; i < draft.size(); ++i)
                tokens.push_back({draft.tokens[i], draft.evidence[i].source});
        });
        if (!tokens.empty()) return;
    }
}

}  // namespace specllama
