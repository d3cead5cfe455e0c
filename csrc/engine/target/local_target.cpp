#include "engine/target/local_target.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/proposal_check.h"
#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

// Maximum number of tokens that are decoded again before a draft, if the memory cannot be cut.
constexpr int kMostPending = 16;

}  // namespace

LocalTarget::LocalTarget(Context& context, std::shared_ptr<StateReader> reader,
                         std::shared_ptr<Vision> vision)
    : context_(context),
      reader_(std::move(reader)),
      vision_(std::move(vision)),
      schedule_(context),
      batch_(context.n_batch()) {
    if (reader_) reader_->attach(context);
}

// Rejected tokens must be cut off again. A memory that cannot be cut goes back to a saved state,
// which works for a draft of any length.
DraftLimits LocalTarget::limits(DraftLimits wanted) const {
    const int n_cuttable = context_.memory().n_cuttable();
    const int most = n_cuttable == 0 ? Memory::kAnyNumber : n_cuttable;
    const int n_room = context_.n_batch() - 1;
    return {std::min({wanted.depth, most, n_room}), std::min(wanted.nodes, n_room)};
}

// A memory that cannot be cut goes back to the state before a round, and the next round decodes the
// accepted tokens again, before its draft. If they are many, as after a prompt, a round decodes
// them without a draft.
DraftLimits LocalTarget::limits(const Sequence& sequence, DraftLimits wanted) const {
    if (context_.memory().n_cuttable() == 0 &&
        sequence.n_pending() > std::min(wanted.depth, kMostPending) + 1)
        return {};
    const DraftLimits alone = limits(wanted);
    const int n_room = schedule_.tokens_per_sequence() - sequence.n_pending();
    // Every node takes a cell of the memory, even if several have the same position.
    return {std::max(std::min(alone.depth, n_room), 0),
            std::min({alone.nodes, n_room, context_.n_ctx() - sequence.n_rows()})};
}

void LocalTarget::begin(Sequence& sequence) {
    // A later request may continue a conversation from before its last turn.
    context_.memory().save_checkpoint(sequence.id());
    schedule_.place_checkpoints(sequence);
    entered_.push_back(&sequence);
    // A request's own draft is verified at once if the memory holds the text except for the tokens
    // that a round leaves pending.
    if (sequence.given() != nullptr && sequence.n_pending() <= kMostPending + 1)
        sequence.end_prompt();
}

void LocalTarget::end(Sequence& sequence) { std::erase(entered_, &sequence); }

void LocalTarget::prefill(std::span<Sequence* const> sequences, std::vector<Sequence*>& ready,
                          std::vector<Decode>& decodes) {
    context_.adapt_threads();
    n_alone_ = 0;
    schedule_.begin(sequences);
    prompts_.clear();
    ready.clear();
    for (Sequence* sequence : sequences)
        (schedule_.must_prefill(*sequence) ? prompts_ : ready).push_back(sequence);
    if (!prompts_.empty()) {
        schedule_.choose(prompts_, chunks_);
        Sequence& first = *prompts_.front();
        const std::size_t n = prompts_.size();
        if (PromptSchedule::at_media(first))
            decode_media(first);
        else if (context_.memory().per_sequence_streams())
            decode_apart(0, n, decodes);
        else
            decode_prompts(0, n, decodes);
        for (Sequence* sequence : prompts_)
            if (sequence->n_pending() <= schedule_.n_tail(*sequence)) ready.push_back(sequence);
    }
    // A decode that failed may have ended some of them, or lost their state.
    std::erase_if(ready, [this](const Sequence* sequence) {
        return sequence->done() || schedule_.must_prefill(*sequence);
    });
    if (context_.memory().per_sequence_streams()) std::ranges::sort(ready, {}, &Sequence::id);
}

// Decodes the chunks of these prompts one by one.
void LocalTarget::decode_apart(std::size_t first, std::size_t last, std::vector<Decode>& decodes) {
    for (std::size_t i = first; i < last; ++i)
        if (!prompts_[i]->done()) decode_prompts(i, i + 1, decodes);
}

// Decodes the chunks of these prompts at once; if that fails, one by one.
void LocalTarget::decode_prompts(std::size_t first, std::size_t last,
                                 std::vector<Decode>& decodes) {
    const Stopwatch watch;
    batch_.clear();
    for (std::size_t i = first; i < last; ++i) {
        const Sequence& sequence = *prompts_[i];
        Position position = sequence.n_cached();
        for (const Token token : sequence.pending().first(chunks_[i]))
            batch_.add(token, position++, sequence.id(), false);
    }
    try {
        context_.decode(batch_);
    } catch (const Error&) {
        const bool alone = last - first == 1;
        recover(alone ? prompts_[first] : nullptr);
        if (!alone) decode_apart(first, last, decodes);
        return;
    }
    decodes.push_back({.n_rows = batch_.size(), .n_threads = context_.n_threads()});
    const double seconds = watch.seconds();
    int row = 0;
    for (std::size_t i = first; i < last; ++i) {
        Sequence& sequence = *prompts_[i];
        process(sequence, row, chunks_[i], {});
        row += chunks_[i];
        prefilled(sequence, chunks_[i], seconds);
    }
}

// Encodes and decodes the next image or sound of the prompt. Its time is not reported, because it
// does not predict other decodes.
void LocalTarget::decode_media(Sequence& sequence) {
    const Stopwatch watch;
    const Sequence::PlacedMedia& media = *sequence.next_media();
    try {
        vision_->decode(*media.chunk, context_, sequence.id(), media.begin);
    } catch (const Error&) {
        recover(&sequence);
        return;
    }
    prefilled(sequence, media.chunk->n_positions(), watch.seconds());
}

void LocalTarget::prefilled(Sequence& sequence, int n, double seconds) {
    sequence.set_cached(sequence.n_cached() + n);
    sequence.stats.seconds.prefill += seconds;
    if (schedule_.at_checkpoint(sequence)) context_.memory().save_checkpoint(sequence.id());
}

// With per-sequence streams, only neighbours with equal numbers of rows can be decoded at once.
std::size_t LocalTarget::n_together(std::span<const Verification> drafts) const {
    if (!context_.memory().per_sequence_streams()) return drafts.size();
    const auto n_rows = [&](std::size_t i) {
        return drafts[i].sequence->n_pending() + drafts[i].draft->size();
    };
    const auto id = [&](std::size_t i) { return drafts[i].sequence->id(); };
    const std::size_t most = context_.one_by_one() ? 1 : drafts.size();
    std::size_t n = 1;
    while (n < most && id(n) == id(n - 1) + 1 && n_rows(n) == n_rows(0) &&
           !drafts[n].sequence->done())
        ++n;
    return n;
}

std::size_t LocalTarget::verify(std::span<Verification> drafts, int n_padding,
                                std::vector<Decode>& decodes) {
    // A sequence that is done here has lost its state to another's failed decode.
    if (drafts.front().sequence->done()) {
        n_alone_ -= n_alone_ > 0 ? 1 : 0;
        return 1;
    }
    const bool again = n_alone_ > 0;
    const std::size_t n = again ? 1 : n_together(drafts);
    n_alone_ -= again ? 1 : 0;
    try {
        decode_drafts(drafts.first(n), again ? 0 : n_padding, decodes);
    } catch (const Error&) {
        recover(n == 1 ? drafts.front().sequence : nullptr);
        if (n == 1) return 1;
        n_alone_ = n;
        return verify(drafts, n_padding, decodes);
    }
    for (std::size_t i = 0; i < n; ++i) {
        try {
            walk(drafts[i], rows_[i]);
        } catch (const Error&) {
            drafts[i].sequence->fail();
            rewind(*drafts[i].sequence, drafts[i].sequence->n_cached());
        }
    }
    return n;
}

void LocalTarget::decode_drafts(std::span<Verification> drafts, int n_padding,
                                std::vector<Decode>& decodes) {
    const Stopwatch watch;
    batch_.clear();
    rows_.clear();
    const auto n_sequences = static_cast<int>(drafts.size());
    int n_context = 0;
    bool ends_prompt = false;
    for (const Verification& one : drafts) {
        n_context += one.sequence->n_rows() / n_sequences;
        ends_prompt |= one.sequence->in_prompt();
        rows_.push_back(add_draft(one));
    }
    // The decode is padded by rows that are cut off again like rejected ones. They request logits,
    // because the graph depends on the number of rows that do.
    const Verification& last = drafts.back();
    if (last.draft->n_leaves() == 1) {
        Position position = last.sequence->n_tokens() + last.draft->size();
        const int n_room = context_.n_ctx() - last.sequence->n_rows() - last.draft->size();
        for (int n = std::min(n_padding, n_room); n > 0; --n)
            batch_.add(last.sequence->tokens().back(), position++, last.sequence->id(), true);
    }
    context_.decode(batch_);
    const double seconds = watch.seconds();
    decodes.push_back({batch_.size(), n_context, ends_prompt ? 0 : seconds, context_.n_threads()});
    for (Verification& one : drafts) {
        one.seconds = seconds;
        one.sequence->stats.n_threads = context_.n_threads();
    }
}

// Adds the tokens not yet decoded and a draft to the batch. Returns the row of the last token that
// is committed.
int LocalTarget::add_draft(const Verification& one) {
    const Sequence& sequence = *one.sequence;
    const Tree& draft = *one.draft;
    Memory& memory = context_.memory();
    if (!draft.empty() && memory.n_cuttable() == 0) memory.save_round(sequence.id());
    memory.branch(sequence.id(), draft.n_leaves() - 1);
    const std::span<SequenceId> ids = memory.ids(sequence.id());
    const std::span<SequenceId> all = ids.first(draft.n_leaves());
    const TokenSpan pending = sequence.pending();
    Position position = sequence.n_cached();
    for (const Token token : pending.first(pending.size() - 1))
        batch_.add(token, position++, all, false);
    const int row = batch_.add(pending.back(), position++, all, true);
    for (const Tree::Node& node : draft.nodes())
        batch_.add(node.token, position + node.depth, ids.subspan(node.leaf, node.n_leaves), true);
    return row;
}

// Walks from the last committed token along the sampler's choices, until one is not a node of the
// draft. row: of the logits after the last committed token.
void LocalTarget::walk(Verification& one, int row) {
    Sequence& sequence = *one.sequence;
    const Tree& draft = *one.draft;
    Seconds& seconds = sequence.stats.seconds;
    (sequence.in_prompt() ? seconds.prefill : seconds.verify) += one.seconds;
    const int n_pending = sequence.n_pending();
    for (bool continues = true; continues;) {
        candidates_.clear();
        for (int at = draft.first_child(one.node()); at != Tree::kNone; at = draft[at].next)
            candidates_.push_back({draft[at].token, draft[at].drawn_from});
        std::optional<TokenLogprobs> logprobs;
        {
            const Timer timer(seconds.choose);
            one.last =
                sequence.choose(context_.logits(row + 1 + one.node()), candidates_, logprobs);
        }
        continues = one.last >= 0 && one.accept(one.last, std::move(logprobs));
    }
    process(sequence, row - n_pending + 1, n_pending, one.path);
    one.verified = true;
}

// Called while the error of a failed decode is handled. If one sequence was decoded alone, the
// error ends it. If the memory cannot be cut, it also ends all sequences that have lost their
// state, even those that were not in the decode: they would begin again in every round.
void LocalTarget::recover(const Sequence* alone) {
    for (Sequence* sequence : entered_) {
        const int n_before = std::min(sequence->n_cached(), sequence->n_tokens());
        rewind(*sequence, n_before);
        if (sequence->done() || (sequence != alone && sequence->n_cached() == n_before)) continue;
        sequence->fail();
    }
}

void LocalTarget::rewind(Sequence& sequence, int keep) {
    sequence.set_cached(context_.memory().rewind(sequence.id(), keep));
}

// A stop string may have removed tokens that the memory holds.
void LocalTarget::restore() {
    for (Sequence* sequence : entered_)
        rewind(*sequence, std::min(sequence->n_cached(), sequence->n_tokens()));
}

// Tells the reader which rows of a decode to keep: the n rows of a sequence from `row` on, whose
// tokens the memory did not hold before, and the rows of the accepted nodes after them. Accepted
// tokens of a branch are kept here, although the next decode repeats them: a head that waited for
// that decode could not draft.
void LocalTarget::process(Sequence& sequence, int row, int n, std::span<const int> path) {
    if (!reader_) return;
    stay_.resize(n);
    std::iota(stay_.begin(), stay_.end(), row);
    for (const int node : path) stay_.push_back(row + n + node);
    contained(sequence, [&] {
        reader_->process(sequence.id(), sequence.text_tokens(),
                         sequence.n_text(sequence.n_cached()), stay_);
    });
}

}  // namespace specllama
