#include "beam/beam_drafter.h"

#include <string>

#include "engine/proposal_check.h"

namespace specllama {

BeamDrafter::BeamDrafter(std::span<const std::shared_ptr<CoreDrafter>> drafters, const Trie& trie,
                         Sequence& request, SequenceId id, TokenSpan reference,
                         const Vocabulary& vocab)
    : trie_(trie), request_(request), id_(id), vocab_(vocab) {
    const TokenSpan prompt = request.tokens();
    text_.assign(prompt.begin(), prompt.end());
    for (const auto& drafter : drafters)
        if (!drafter->has_step_cost()) drafters_.push_back(drafter.get());
    for (CoreDrafter* drafter : drafters_)
        contained(request_, [&] { drafter->begin(id_, prompt, reference); });
}

BeamDrafter::~BeamDrafter() {
    try {
        for (CoreDrafter* drafter : drafters_) contained(request_, [&] { drafter->end(id_); });
    } catch (...) {
        // An exception from here would end the process, and the drafter is not needed after this.
    }
}

void BeamDrafter::follow(std::span<const Hypothesis> running) {
    NodeId common = running.front().node;
    for (const Hypothesis& one : running) common = trie_.common(common, one.node);
    trie_.append_path(common_, common, text_);
    common_ = common;
}

void BeamDrafter::propose(NodeId node, int n, std::vector<Lookahead::Candidate>& tokens) {
    tokens.clear();
    suffix_.clear();
    trie_.append_path(common_, node, suffix_);
    const auto n_suffix = static_cast<int>(suffix_.size());
    for (CoreDrafter* drafter : drafters_) {
        proposal_.sequence = id_;
        proposal_.tokens = text_;
        proposal_.max_tokens = n_suffix + n;
        proposal_.sampler = &request_.sampler();
        proposal_.error.clear();
        proposal_.draft.clear();
        for (const Token token : suffix_) proposal_.draft.push(token, {});
        contained(request_, [&] {
            drafter->propose({&proposal_, 1});
            const SampledDraft& draft = proposal_.draft;
            std::string wrong = fault(proposal_, vocab_);
            if (wrong.empty() && draft.size() < n_suffix)
                wrong = "The drafter removed tokens that it must continue from.";
            if (!wrong.empty()) throw DrafterError(wrong);
            for (int i = n_suffix; i < draft.size(); ++i)
                tokens.push_back({draft.tokens[i], draft.evidence[i].source});
        });
        if (!tokens.empty()) return;
    }
}

}  // namespace specllama
