#include "draft/model_drafter.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sample/sampler.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr SequenceId kOnlySequence = 0;

std::shared_ptr<const Model> load(const Model& target, const DraftModelOptions& options,
                                  const ProgressFunction& progress) {
    if (!(options.p_min >= 0 && options.p_min <= 1))
        throw InvalidArgument("draft_p_min must be from 0 (off) to 1, not " +
                              std::to_string(options.p_min) + ".");
    auto model = Model::load(options.model, progress);
    const std::string difference = target.vocab().difference(model->vocab());
    if (!difference.empty())
        throw ModelError("The draft model " + options.model.path + " cannot draft for " +
                         target.path() + ": " + difference + ".");
    return model;
}

ContextOptions context_options(const Model& target, const DraftModelOptions& options,
                               const ContextOptions& target_context) {
    ContextOptions context = options.context;
    context.n_ctx = target_context.n_ctx;
    context.n_batch = target_context.n_batch;
    if (context.n_ctx == 0) context.n_ctx = Context::default_n_ctx(target);
    return context;
}

// The probability that softmax gives to a token.
float probability(std::span<const float> logits, Token token) {
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - logits[token]);
    return static_cast<float>(1 / sum);
}

}  // namespace

ModelDrafter::ModelDrafter(const Model& target, const DraftModelOptions& options,
                           const ContextOptions& target_context, const ProgressFunction& progress)
    : context_(load(target, options, progress), context_options(target, options, target_context),
               1),
      p_min_(options.p_min),
      batch_(context_.n_batch()) {
    if (!context_.memory().can_cut())
        throw ModelError("The draft model " + options.model.path +
                         " cannot draft: its memory (recurrent or hybrid) cannot be cut back.");
}

void ModelDrafter::begin(SequenceId sequence, TokenSpan prompt) {
    Follower& follower = followers_[sequence];
    follower.tokens.reserve(std::max<std::size_t>(context_.n_ctx(), prompt.size()) +
                            kMaxSpecLength);
}

// What the sequence's memory holds stays for the next request, which may begin alike.
void ModelDrafter::end(SequenceId) {}

void ModelDrafter::propose(std::span<Proposal> proposals) {
    for (Proposal& proposal : proposals)
        if (proposal.max_tokens > 0) draft(proposal, followers_.at(proposal.sequence));
}

void ModelDrafter::draft(Proposal& proposal, Follower& follower) {
    // Cut back to what the sequence has become, but for its last token, whose logits are wanted.
    const TokenSpan held = TokenSpan(follower.tokens).first(follower.n_cached);
    const TokenSpan wanted = proposal.tokens.first(proposal.tokens.size() - 1);
    const auto n_common = std::ranges::mismatch(held, wanted).in1 - held.begin();
    follower.n_cached = context_.memory().rewind(kOnlySequence, static_cast<int>(n_common));
    follower.tokens.assign(proposal.tokens.begin(), proposal.tokens.end());

    while (proposal.draft.size() < proposal.max_tokens) {
        const std::span<float> logits = decode_pending(kOnlySequence, follower);
        const Token token = proposal.sampler->choose(logits, follower.tokens);
        if (token == kNoToken)
            throw DrafterError("The draft model gave logits that are no numbers.");
        float confidence = 1;
        if (p_min_ > 0) {
            confidence = probability(logits, token);
            if (confidence < p_min_) return;
        }
        proposal.draft.push(token, confidence);
        follower.tokens.push_back(token);
    }
}

// Decodes what the memory does not hold yet; the logits after the last token.
std::span<float> ModelDrafter::decode_pending(SequenceId sequence, Follower& follower) {
    int row = 0;
    const int n_tokens = static_cast<int>(follower.tokens.size());
    while (follower.n_cached < n_tokens) {
        const int n = std::min(context_.n_batch(), n_tokens - follower.n_cached);
        batch_.clear();
        for (int position = follower.n_cached; position < follower.n_cached + n; ++position)
            row =
                batch_.add(follower.tokens[position], position, sequence, position + 1 == n_tokens);
        try {
            context_.decode(batch_);
        } catch (...) {
            follower.n_cached = context_.memory().rewind(sequence, follower.n_cached);
            throw;
        }
        follower.n_cached += n;
        n_decoded_ += n;
    }
    return context_.logits(row);
}

}  // namespace specllama
