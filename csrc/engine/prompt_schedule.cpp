#include "engine/prompt_schedule.h"

#include <algorithm>
#include <ranges>

namespace specllama {

namespace {

// Maximum number of rows of a round with which prompt tails are decoded. On all measured
// processors, one decode of so many rows takes less time than two decodes, of the prompt's rows and
// of the others (docs/measured/figures.md). The next step of the cost is at 33 rows (AMX kernels
// work on 32 at once); the rows in between are left for drafts.
constexpr int kMostPiggybackRows = 24;

// If going back needs saved states, the state of a prompt with at least kLeastSaved new tokens is
// saved kSavedTail tokens before its end: chat templates end prompts with some tokens that the next
// turn does not have there, such as "<think>". This costs one more decode.
constexpr int kSavedTail = 4;
constexpr int kLeastSaved = 64;

}  // namespace

void PromptSchedule::begin(std::span<Sequence* const> sequences) {
    tokens_per_sequence_ = target_.n_batch() / static_cast<int>(sequences.size());
    set_tails(sequences);
}

// With rows of others, prompts share what is left of kMostPiggybackRows. Alone they share the
// batch: a prompt that does not fit has another decode, which leaves the token whose logits are
// read. Per-sequence streams with unequal numbers of rows are decoded separately anyway.
void PromptSchedule::set_tails(std::span<Sequence* const> sequences) {
    most_tail_ = tail_ = 1;
    if (target_.last_alone()) return;
    int n_rows = 0;
    int n_prompts = 0;
    for (const Sequence* sequence : sequences) {
        if (sequence->in_prompt())
            ++n_prompts;
        else
            n_rows += sequence->n_pending();
    }
    most_tail_ = tokens_per_sequence_;
    if (n_rows == 0 || n_prompts == 0 || target_.memory().per_sequence_streams()) return;
    most_tail_ = tail_ =
        std::clamp((kMostPiggybackRows - n_rows) / n_prompts, 1, tokens_per_sequence_);
}

// Prompts to be saved are prefilled even if they are short.
bool PromptSchedule::must_prefill(const Sequence& sequence) const {
    if (is_saved(sequence) || sequence.next_media() != nullptr)
        return sequence.n_pending() > n_tail(sequence);
    return sequence.n_pending() > (sequence.in_prompt() ? most_tail_ : tokens_per_sequence_);
}

int PromptSchedule::n_tail(const Sequence& sequence) const {
    const int n = is_saved(sequence) ? std::min(kSavedTail, tokens_per_sequence_) : tail_;
    return std::min(n, sequence.n_after_media());
}

bool PromptSchedule::is_saved(const Sequence& sequence) const {
    return target_.memory().most_checkpoints() > 0 && sequence.in_prompt() &&
           sequence.n_tokens() - sequence.n_reused() >= kLeastSaved;
}

// From the prompt's end backwards, because its last messages are the likeliest to change. Messages
// shorter than the distance between two checkpoints share one: each checkpoint costs a decode, and
// surplus ones would be dropped again.
void PromptSchedule::place_checkpoints(Sequence& sequence) const {
    sequence.checkpoints.clear();
    if (!is_saved(sequence)) return;
    const int step =
        std::max(kLeastSaved, sequence.n_tokens() / target_.memory().most_checkpoints());
    const int first = sequence.n_reused() + kLeastSaved;
    int next = sequence.n_tokens() - kSavedTail;
    for (const int end : sequence.message_ends() | std::views::reverse) {
        if (end < first || end > next - step) continue;
        sequence.checkpoints.push_back(end);
        next = end;
    }
    std::ranges::reverse(sequence.checkpoints);
}

bool PromptSchedule::at_checkpoint(const Sequence& sequence) const {
    return is_saved(sequence) &&
           (sequence.n_pending() == n_tail(sequence) ||
            std::ranges::binary_search(sequence.checkpoints, sequence.n_cached()));
}

// Whether an image or a sound comes next, which is decoded alone.
bool PromptSchedule::at_media(const Sequence& sequence) {
    const auto* media = sequence.next_media();
    return media != nullptr && media->begin == sequence.n_cached();
}

// Tokens of a prompt that the memory holds after its next batch, if that has room.
int PromptSchedule::next_stop(const Sequence& sequence) const {
    int end = sequence.n_tokens() - n_tail(sequence);
    if (const auto* media = sequence.next_media()) end = std::min(end, media->begin);
    const auto next = std::ranges::upper_bound(sequence.checkpoints, sequence.n_cached());
    return next == sequence.checkpoints.end() ? end : std::min(*next, end);
}

// Rows of a round in the same batch would cost as much as a separate decode with kernels for wide
// decodes, and even more with flash attention (see kMostPiggybackRows).
//
// The first sequence has the next id after the last one; the ids wrap around.
void PromptSchedule::choose(std::vector<Sequence*>& prompts, std::vector<int>& chunks) {
    const auto turn = [&](const Sequence* sequence) {
        return (sequence->id() - last_ - 1 + target_.n_seq()) % target_.n_seq();
    };
    std::ranges::sort(prompts, {}, turn);
    const auto end =
        at_media(*prompts.front())
            ? prompts.begin() + 1
            : std::ranges::find_if(prompts, [](const auto* one) { return at_media(*one); });
    prompts.erase(end, prompts.end());
    int room = target_.n_batch();
    chunks.clear();
    while (room > 0 && chunks.size() < prompts.size()) {
        const Sequence& sequence = *prompts[chunks.size()];
        const int n = next_stop(sequence) - sequence.n_cached();
        // A prompt that has its own decode is not divided to fill the batch.
        if (target_.memory().per_sequence_streams() && n > room && !chunks.empty()) break;
        chunks.push_back(std::min(n, room));
        room -= chunks.back();
    }
    prompts.resize(chunks.size());
    last_ = prompts.back()->id();
}

}  // namespace specllama
