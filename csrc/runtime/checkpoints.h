#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace specllama {

// A saved state of a sequence. Never changed, so sequences and backups may share it.
struct Checkpoint {
    int size = 0;  // positions
    std::shared_ptr<const std::vector<std::uint8_t>> state;
};

// The saved states of a sequence, the shortest first.
using Checkpoints = std::vector<Checkpoint>;

// How many states of all sequences are kept. If there would be more, one goes whose neighbours are
// closest to each other: what stays is spread evenly over the text.
struct CheckpointLimits {
    int most = 32;                      // of each sequence
    std::size_t most_bytes = SIZE_MAX;  // of all sequences together
};

std::size_t n_bytes(const Checkpoints& checkpoints);

// As many of them as take most_bytes, but at least two, the last one among them.
Checkpoints thinned(Checkpoints checkpoints, std::size_t most_bytes);

// Makes room for a state of so many positions and bytes after those of sequences[i]; false: there
// is none. The latest states of other sequences stay.
bool make_room(std::span<Checkpoints> sequences, std::size_t i, int size, std::size_t n_bytes,
               const CheckpointLimits& limits);

}  // namespace specllama
