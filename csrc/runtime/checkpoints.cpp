#include "runtime/checkpoints.h"

#include <algorithm>

namespace specllama {

namespace {

// Of the first n, drops the one whose neighbours are closest to each other. next: size of the one
// that will follow the last.
void drop_one(Checkpoints& checkpoints, std::size_t n, int next) {
    const auto distance = [&](std::size_t i) {
        const int before = i == 0 ? 0 : checkpoints[i - 1].size;
        const int after = i + 1 < checkpoints.size() ? checkpoints[i + 1].size : next;
        return after - before;
    };
    std::size_t closest = 0;
    for (std::size_t i = 1; i < n; ++i)
        if (distance(i) < distance(closest)) closest = i;
    checkpoints.erase(checkpoints.begin() + static_cast<std::ptrdiff_t>(closest));
}

}  // namespace

std::size_t n_bytes(const Checkpoints& checkpoints) {
    std::size_t n = 0;
    for (const Checkpoint& one : checkpoints) n += one.state->size();
    return n;
}

Checkpoints thinned(Checkpoints checkpoints, std::size_t most_bytes) {
    while (checkpoints.size() > 2 && n_bytes(checkpoints) > most_bytes)
        drop_one(checkpoints, checkpoints.size() - 1, checkpoints.back().size);
    return checkpoints;
}

bool make_room(std::span<Checkpoints> sequences, std::size_t i, int size, std::size_t n_bytes,
               const CheckpointLimits& limits) {
    if (limits.most == 0 || n_bytes > limits.most_bytes) return false;
    Checkpoints& own = sequences[i];
    if (std::ssize(own) >= limits.most) drop_one(own, own.size(), size);
    // The last state of another sequence is kept.
    const auto n_droppable = [&](const Checkpoints& of) {
        return of.size() - (&of == &own || of.empty() ? 0 : 1);
    };
    std::size_t n_all = 0;
    for (const Checkpoints& of : sequences) n_all += specllama::n_bytes(of);
    while (n_all > limits.most_bytes - n_bytes) {
        Checkpoints& most = *std::ranges::max_element(sequences, {}, n_droppable);
        if (n_droppable(most) == 0) return false;
        const std::size_t n_before = specllama::n_bytes(most);
        drop_one(most, n_droppable(most), size);
        n_all -= n_before - specllama::n_bytes(most);
    }
    return true;
}

}  // namespace specllama
