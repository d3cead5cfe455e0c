#include "draft/model_drafter.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "draft/guesser.h"
#include "sample/probability.h"
#include "sample/sampler.h"
#include "specllama/error.h"

namespace specllama {

namespace {

using Clock = std::chrono::steady_clock;

constexpr SequenceId kOnlySequence = 0;

std::shared_ptr<const Model> load(const Model& target, const DraftModelOptions& options,
                                  const Header& header, const ProgressFunction& progress) {
    if (!(options.p_min >= 0 && options.p_min <= 1))
        throw InvalidArgument("draft_p_min must be from 0 (off) to 1, not " +
                              std::to_string(options.p_min) + ".");
    auto model = Model::load(options.model, header, progress);
    const std::string difference = target.vocab().difference(model->vocab());
    if (!difference.empty())
        throw ModelError("The draft model " + options.model.path + " cannot draft for " +
                         target.path() + ": " + difference + ".");
    return model;
}

}  // namespace

ModelDrafter::ModelDrafter(const Model& target, const DraftModelOptions& options,
                           const Header& header, int longest, const ProgressFunction& progress)
    : context_(load(target, options, header, progress), options.context, longest),
      options_(options),
      batch_(context_.n_batch()) {
    try {
        make_sampler(Sampler({}, 1));
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(std::string("draft_") + error.what());
    }
    if (context_.memory().n_cuttable() != Memory::kAnyNumber)
        throw ModelError("The draft model " + options.model.path +
                         " cannot draft: its memory (recurrent or hybrid) cannot be cut back.");
}

void ModelDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan) {
    Follower& follower = followers_[sequence];
    follower.sampler.reset();
    follower.drawn_from.resize(kMaxSpecLength);
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
    const auto wants_more = [&] {
        return proposal.draft.size() < proposal.max_tokens &&
               (proposal.another == nullptr || (*proposal.another)(proposal.draft));
    };
    if (!wants_more()) return;
    follow(proposal, follower);
    if (!follower.sampler) follower.sampler.emplace(make_sampler(*proposal.sampler));
    for (bool more = true; more;) {
        const auto n_before = static_cast<int>(follower.tokens.size());
        const TokenSpan guess = guess_behind(proposal, n_before - follower.n_cached);
        const auto started = Clock::now();
        const int row = decode(kOnlySequence, follower, guess);
        const std::chrono::duration<double> seconds = Clock::now() - started;
        // As the target verifies a draft.
        int n_right = 0;
        for (bool right = true; right && more;) {
            more = extend(proposal, follower, context_.logits(row + n_right));
            right = more && n_right < std::ssize(guess) && follower.tokens.back() == guess[n_right];
            n_right += right;
            more = more && wants_more();
        }
        follower.n_cached = context_.memory().rewind(kOnlySequence, n_before + n_right);
        if (proposal.guesser != nullptr) proposal.guesser->observe(proposal, seconds.count());
    }
}

// What is decoded along with the n_pending last tokens.
TokenSpan ModelDrafter::guess_behind(const Proposal& proposal, int n_pending) const {
    if (proposal.guesser == nullptr) return {};
    const int n_most =
        std::min(proposal.max_tokens - proposal.draft.size() - 1, context_.n_batch() - n_pending);
    return proposal.guesser->guess(proposal, n_pending, std::max(n_most, 0));
}

// Drafts the token that the logits call for; whether there is one.
bool ModelDrafter::extend(Proposal& proposal, Follower& follower, std::span<float> logits) const {
    Distribution& drawn_from = follower.drawn_from[proposal.draft.size()];
    const Token token = follower.sampler->draft(logits, follower.tokens, drawn_from);
    if (token == kNothingLeft) return false;
    if (token == kNoToken) throw DrafterError("The draft model gave logits that are no numbers.");
    // Drawn drafts end by what they are drawn from, not by what was drawn.
    const bool draws = follower.sampler->rejects();
    const auto confidence =
        draws ? static_cast<float>(highest(drawn_from)) : probability(logits, token);
    if (confidence < options_.p_min) return false;
    proposal.draft.push(token, {.source = Source::model, .confidence = confidence},
                        draws ? &drawn_from : nullptr);
    follower.tokens.push_back(token);
    return true;
}

// Takes over what the sequence, and the draft to go on from, have become. The memory is cut back to
// what it shares with them, but for the last token, whose logits are wanted.
void ModelDrafter::follow(const Proposal& proposal, Follower& follower) {
    const TokenSpan held = TokenSpan(follower.tokens).first(follower.n_cached);
    const TokenSpan drafted(proposal.draft.tokens);
    auto n_common = std::ranges::mismatch(held, proposal.tokens).in1 - held.begin();
    if (n_common == std::ssize(proposal.tokens))
        n_common += std::ranges::mismatch(held.subspan(n_common), drafted).in2 - drafted.begin();
    const auto n_all = std::ssize(proposal.tokens) + std::ssize(drafted);
    follower.n_cached = context_.memory().rewind(
        kOnlySequence, static_cast<int>(std::min<std::ptrdiff_t>(n_common, n_all - 1)));
    follower.tokens.assign(proposal.tokens.begin(), proposal.tokens.end());
    follower.tokens.insert(follower.tokens.end(), drafted.begin(), drafted.end());
}

// By the target's rule and noise, but with a temperature and cuts of its own, if it was given any.
Sampler ModelDrafter::make_sampler(const Sampler& target) const {
    SamplingOptions options = target.options();
    options.temperature = options_.temperature.value_or(options.temperature);
    options.top_k = options_.top_k.value_or(options.top_k);
    options.top_p = options_.top_p.value_or(options.top_p);
    options.min_p = options_.min_p.value_or(options.min_p);
    options.logprobs = -1;
    options.processed_logprobs = false;
    options.grammar.clear();
    return {options, static_cast<std::size_t>(context_.model().vocab().size())};
}

// Decodes what the memory does not hold yet, and a guess behind it that the last batch has room
// for. Returns the row of the logits after the last token, before those of the guess.
int ModelDrafter::decode(SequenceId sequence, Follower& follower, TokenSpan guess) {
    int row = 0;
    const int n_tokens = static_cast<int>(follower.tokens.size());
    const int n_all = n_tokens + static_cast<int>(guess.size());
    while (follower.n_cached < n_all) {
        const int n = std::min(context_.n_batch(), n_all - follower.n_cached);
        batch_.clear();
        for (int position = follower.n_cached; position < follower.n_cached + n; ++position) {
            const bool is_guess = position >= n_tokens;
            const Token token = is_guess ? guess[position - n_tokens] : follower.tokens[position];
            const int at = batch_.add(token, position, sequence, position + 1 >= n_tokens);
            if (!is_guess) row = at;
        }
        try {
            context_.decode(batch_);
        } catch (...) {
            follower.n_cached = context_.memory().rewind(sequence, follower.n_cached);
            throw;
        }
        follower.n_cached += n;
        n_decoded_ += n;
    }
    return row;
}

}  // namespace specllama
