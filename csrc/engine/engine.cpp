#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

// Most tokens that are decoded again ahead of a draft, where the memory cannot be cut.
constexpr int kMostPending = 16;

// Rows of a round up to which prompts ride in it. So many rows take less time in one decode than
// those of the prompt and of the others apart, on all processors measured (docs/figures.md). The
// next step is at 33 rows (AMX's kernels work on 32 at once); the rows up to there are left for
// drafts.
constexpr int kMostRidden = 24;

// Where states must be saved to go back to, a prompt with kLeastMarked new tokens or more is saved
// as it is kBehindMark tokens before its end: chat templates end prompts by some tokens that the
// next turn does not have there, such as "<think>". That costs a decode more.
constexpr int kBehindMark = 4;
constexpr int kLeastMarked = 64;

}  // namespace

Engine::Engine(Context& target, Speculator speculator)
    : target_(target), speculator_(std::move(speculator)), batch_(target.n_batch()) {}

// Rejected tokens must be cut off again. A memory that cannot be cut goes back to a saved state,
// which works for a draft of any length.
int Engine::longest_draft() const {
    if (!speculator_.speculates()) return 0;
    const int n_cuttable = target_.memory().n_cuttable();
    const int most = n_cuttable == 0 ? Memory::kAnyNumber : n_cuttable;
    return std::min({speculator_.longest(), most, target_.n_batch() - 1});
}

int Engine::most_nodes() const {
    return std::min(speculator_.limits().nodes, target_.n_batch() - 1);
}

void Engine::begin(Sequence& sequence, TokenSpan reference) {
    // A conversation may be taken up before its last turn.
    target_.memory().checkpoint(sequence.id(), Memory::Mark::begin);
    speculator_.begin(sequence, reference);
    entered_.push_back(&sequence);
}

void Engine::end(Sequence& sequence) {
    std::erase(entered_, &sequence);
    speculator_.end(sequence);
}

void Engine::step(std::span<Sequence* const> sequences) {
    quota_ = target_.n_batch() / static_cast<int>(sequences.size());
    ride_ = ride(sequences);
    in_prompt_.clear();
    ready_.clear();
    for (Sequence* sequence : sequences)
        (must_prefill(*sequence) ? in_prompt_ : ready_).push_back(sequence);
    try {
        if (!in_prompt_.empty()) prefill();
        for (Sequence* sequence : in_prompt_)
            if (sequence->n_pending() <= n_left(*sequence)) ready_.push_back(sequence);
        // A decode that failed may have ended some of them, or lost their state.
        std::erase_if(ready_, [this](const Sequence* sequence) {
            return sequence->done() || must_prefill(*sequence);
        });
        if (target_.memory().split()) std::ranges::sort(ready_, {}, &Sequence::id);
        if (!ready_.empty()) round();
    } catch (...) {
        // A stop string may have removed tokens that the memory holds.
        for (Sequence* sequence : entered_)
            rewind(*sequence, std::min(sequence->n_cached(), sequence->n_tokens()));
        throw;
    }
}

// Decodes a group at once; if that fails, its sequences one by one.
template <typename Decode>
void Engine::attempt(std::span<Sequence* const> sequences, Group group, Decode decode) {
    const bool alone = group.last - group.first == 1;
    try {
        decode(group);
        return;
    } catch (const Error&) {
        recover(alone ? sequences[group.first] : nullptr);
    }
    if (alone) return;
    for (std::size_t i = group.first; i < group.last; ++i)
        if (!sequences[i]->done()) attempt(sequences, {i, i + 1}, decode);
}

// Called while the error of a failed decode is handled. If one sequence was decoded alone, the
// error ends it. Where the memory cannot be cut, it also ends all that have lost their state, even
// those that were not in the decode: they would begin again in every round.
void Engine::recover(const Sequence* alone) {
    for (Sequence* sequence : entered_) {
        const int n_before = std::min(sequence->n_cached(), sequence->n_tokens());
        rewind(*sequence, n_before);
        if (sequence->done() || (sequence != alone && sequence->n_cached() == n_before)) continue;
        sequence->fail();
    }
}

// Beside rows of others, prompts share what is left of kMostRidden. Alone they share the batch:
// what does not fit into one decode has another, which leaves the token whose logits are read. A
// split memory decodes unequal numbers of rows apart anyway.
Engine::Ride Engine::ride(std::span<Sequence* const> sequences) const {
    if (target_.last_alone()) return {1, 1};
    int n_rows = 0;
    int n_prompts = 0;
    for (const Sequence* sequence : sequences) {
        if (sequence->in_prompt())
            ++n_prompts;
        else
            n_rows += sequence->n_pending();
    }
    if (n_rows == 0 || n_prompts == 0 || target_.memory().split()) return {quota_, 1};
    const int each = std::clamp((kMostRidden - n_rows) / n_prompts, 1, quota_);
    return {each, each};
}

// Prompts that are to be marked are prefilled even if they are short.
bool Engine::must_prefill(const Sequence& sequence) const {
    if (is_marked(sequence)) return sequence.n_pending() > n_left(sequence);
    return sequence.n_pending() > (sequence.in_prompt() ? ride_.most : quota_);
}

// Whether the state of a prompt near its end is saved, for later requests that begin alike.
bool Engine::is_marked(const Sequence& sequence) const {
    return target_.memory().needs_marks() && sequence.in_prompt() &&
           sequence.n_tokens() - sequence.stats.reused_tokens >= kLeastMarked;
}

// How many tokens of a prompt are left for the round that reads its logits.
int Engine::n_left(const Sequence& sequence) const {
    return is_marked(sequence) ? std::min(kBehindMark, quota_) : ride_.rest;
}

// The batch holds prompt tokens only. Rows of a round beside them would cost kernels for wide
// decodes as much as a decode of their own, and flash attention even more (see kMostRidden).
//
// The first sequence is that whose turn it is: the next id after the last one, or the first again.
void Engine::prefill() {
    int room = target_.n_batch();
    const auto turn = [&](const Sequence* sequence) {
        return (sequence->id() - prefilled_ - 1 + target_.n_seq()) % target_.n_seq();
    };
    std::ranges::sort(in_prompt_, {}, turn);
    if (target_.memory().split()) in_prompt_.resize(1);
    chunks_.clear();
    while (room > 0 && chunks_.size() < in_prompt_.size()) {
        const Sequence& sequence = *in_prompt_[chunks_.size()];
        chunks_.push_back(std::min(sequence.n_pending() - n_left(sequence), room));
        room -= chunks_.back();
    }
    in_prompt_.resize(chunks_.size());
    prefilled_ = in_prompt_.back()->id();
    attempt(in_prompt_, {0, chunks_.size()}, [this](Group group) { decode_chunks(group); });
}

void Engine::decode_chunks(Group group) {
    const Stopwatch watch;
    batch_.clear();
    for (std::size_t i = group.first; i < group.last; ++i) {
        const Sequence& sequence = *in_prompt_[i];
        Position position = sequence.n_cached();
        for (const Token token : sequence.pending().first(chunks_[i]))
            batch_.add(token, position++, sequence.id(), false);
    }
    target_.decode(batch_);
    speculator_.observe_decode(batch_.size(), 0, 0);
    const double seconds = watch.seconds();
    int row = 0;
    for (std::size_t i = group.first; i < group.last; ++i) {
        Sequence& sequence = *in_prompt_[i];
        speculator_.absorb(sequence, row, chunks_[i], {});
        row += chunks_[i];
        sequence.set_cached(sequence.n_cached() + chunks_[i]);
        sequence.stats.seconds.prefill += seconds;
        if (is_marked(sequence) && sequence.n_pending() == n_left(sequence))
            target_.memory().checkpoint(sequence.id(), Memory::Mark::prompt);
    }
}

void Engine::round() {
    rows_.resize(ready_.size());
    draft();
    for (std::size_t first = 0; first < ready_.size();) {
        const Group group{first, end_of_group(first)};
        // A sequence that is done here has lost its state to another's failed decode.
        if (!ready_[first]->done())
            attempt(ready_, group, [&](Group part) { accept(part, verify(part)); });
        first = group.last;
    }
}

// In a split memory, only neighbours with equal numbers of rows can be decoded at once.
std::size_t Engine::end_of_group(std::size_t first) const {
    if (!target_.memory().split()) return ready_.size();
    const auto n_rows = [&](std::size_t i) {
        return ready_[i]->n_pending() + speculator_.draft(i).size();
    };
    const std::size_t most = target_.one_by_one() ? first + 1 : ready_.size();
    std::size_t last = first + 1;
    while (last < most && ready_[last]->id() == ready_[last - 1]->id() + 1 &&
           n_rows(last) == n_rows(first) && !ready_[last]->done())
        ++last;
    return last;
}

void Engine::accept(Group group, double seconds) {
    for (std::size_t i = group.first; i < group.last; ++i) {
        Sequence& sequence = *ready_[i];
        try {
            accept(i, sequence, seconds);
        } catch (const Error&) {
            sequence.fail();
            rewind(sequence, sequence.n_cached());
        }
    }
}

// The round that ends a prompt drafts nothing: a draft would delay the first token, and little is
// known of an answer that has not begun.
//
// A memory that cannot be cut goes back to the state before a round, and the next round decodes the
// accepted tokens again, ahead of its draft. If they are many, as after a prompt, a round decodes
// them without a draft.
bool Engine::may_draft(const Sequence& sequence) const {
    return speculator_.speculates() && !sequence.in_prompt() &&
           (target_.memory().n_cuttable() > 0 ||
            sequence.n_pending() <= std::min(speculator_.longest(), kMostPending) + 1);
}

void Engine::draft() {
    limits_.clear();
    for (const Sequence* sequence : ready_) {
        Limit& limit = limits_.emplace_back();
        if (!may_draft(*sequence)) continue;
        const int n_room = quota_ - sequence->n_pending();
        // A round of g drafted tokens generates up to g + 1.
        limit.depth =
            std::max(std::min({longest_draft(), n_room, sequence->n_tokens_left() - 1}), 0);
        // Every node takes a cell of the memory, also where several stand at one position.
        limit.nodes = std::min({most_nodes(), n_room, target_.n_ctx() - sequence->n_tokens()});
    }
    speculator_.propose(ready_, limits_);
}

double Engine::verify(Group group) {
    const Stopwatch watch;
    batch_.clear();
    const int n_sequences = static_cast<int>(group.last - group.first);
    int n_context = 0;
    bool ends_prompt = false;
    for (std::size_t i = group.first; i < group.last; ++i) {
        const Sequence& sequence = *ready_[i];
        n_context += sequence.n_tokens() / n_sequences;
        ends_prompt |= sequence.in_prompt();
        const Tree& draft = speculator_.draft(i);
        Memory& memory = target_.memory();
        if (!draft.empty() && memory.n_cuttable() == 0)
            memory.checkpoint(sequence.id(), Memory::Mark::round);
        memory.branch(sequence.id(), draft.n_leaves() - 1);
        const std::span<SequenceId> ids = memory.ids(sequence.id());
        const std::span<SequenceId> all = ids.first(draft.n_leaves());
        const TokenSpan pending = sequence.pending();
        Position position = sequence.n_cached();
        for (const Token token : pending.first(pending.size() - 1))
            batch_.add(token, position++, all, false);
        rows_[i] = batch_.add(pending.back(), position++, all, true);
        for (const Tree::Node& node : draft.nodes())
            batch_.add(node.token, position + node.depth, ids.subspan(node.leaf, node.n_leaves),
                       true);
        if (i + 1 < group.last || draft.n_leaves() > 1) continue;
        // The decode is padded by rows that are cut off again as if they were rejected. They ask
        // for logits, since the graph depends on how many rows do.
        position += draft.size();
        for (int n = std::min(speculator_.n_padding(), target_.n_ctx() - position); n > 0; --n)
            batch_.add(pending.back(), position++, sequence.id(), true);
    }
    target_.decode(batch_);
    const double seconds = watch.seconds();
    // The time of a decode that ends a prompt says nothing about the rounds that follow.
    speculator_.observe_decode(batch_.size(), n_context, ends_prompt ? 0 : seconds);
    return seconds;
}

// Walks from the last committed token along the tokens that the target chooses, as far as they are
// nodes of the draft, and commits them: these nodes are path_ then, and all that the target said is
// heard_. Returns what it said last: a token, or a negative number as Sampler::choose has it.
Token Engine::walk(std::size_t i, Sequence& sequence) {
    const Tree& draft = speculator_.draft(i);
    Seconds& seconds = sequence.stats.seconds;
    path_.clear();
    heard_.clear();
    for (int node = Tree::kRoot;;) {
        guesses_.clear();
        for (int at = draft.first_child(node); at != Tree::kNone; at = draft[at].next)
            guesses_.push_back({draft[at].token, draft[at].drawn_from});
        Token token = kNoToken;
        {
            const Timer timer(seconds.choose);
            token = sequence.choose(target_.logits(rows_[i] + 1 + node), guesses_);
        }
        if (token < 0) return token;
        heard_.push_back(token);
        node = draft.child(node, token);
        const bool agrees = node != Tree::kNone;
        if (agrees) path_.push_back(node);
        const Timer timer(seconds.text);
        if (!sequence.commit(token, agrees) || !agrees) return token;
    }
}

void Engine::accept(std::size_t i, Sequence& sequence, double seconds) {
    Stats& stats = sequence.stats;
    const int n_before = sequence.n_tokens();
    const int n_pending = sequence.n_pending();
    const bool was_prompt = sequence.in_prompt();
    double& spent = was_prompt ? stats.seconds.prefill : stats.seconds.verify;
    spent += seconds;
    const Token token = walk(i, sequence);
    sequence.end_prompt();
    if (was_prompt) stats.prefill_generated_tokens = sequence.n_generated();
    speculator_.absorb(sequence, rows_[i] - n_pending + 1, n_pending, path_);
    speculator_.observe(i, sequence, path_, heard_, was_prompt ? 0 : seconds);
    // A text that its grammar does not let go on is complete.
    if (token == kNothingLeft && sequence.has_grammar()) sequence.finish(FinishReason::stop);
    {
        const Timer timer(spent);
        // At least one token stays undecoded, since the target has not said what follows it.
        // Accepted tokens of a side branch are cut, too, and come again with the next decode: they
        // do not lie in the memory as they would without a draft, which may change a bit.
        const int n_judged = sequence.n_tokens() - (token < 0 ? 1 : 0);
        rewind(sequence, std::min(n_before + n_in_trunk(path_), n_judged));
    }
    if (token == kNoToken) {
        sequence.spoiled = true;
        throw DecodeError(
            "The model gave logits that are not numbers (NaN or infinite); the file is damaged, or "
            "its numbers overflow on this device.");
    }
    if (token == kNothingLeft && !sequence.done())
        throw DecodeError(
            "The model left nothing to choose from: logit_bias, or the model itself, forbids every "
            "token.");
    commit_forced(sequence);
}

// Tokens that the grammar leaves no choice about need no logits: they are decoded with the next
// round, ahead of its draft.
void Engine::commit_forced(Sequence& sequence) {
    while (!sequence.done()) {
        const Token token = speculator_.forced_token(sequence);
        if (token == kNoToken) return;
        const Timer timer(sequence.stats.seconds.text);
        if (sequence.traces()) sequence.trace.back().certain.push_back(token);
        sequence.commit(token, false);
        // A stop string may remove tokens that the memory holds.
        if (sequence.n_tokens() < sequence.n_cached()) rewind(sequence, sequence.n_tokens());
        ++sequence.stats.certain;
    }
}

void Engine::rewind(Sequence& sequence, int keep) {
    sequence.set_cached(target_.memory().rewind(sequence.id(), keep));
}

}  // namespace specllama
