#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace specllama {

// A saved state of a sequence. Immutable, so sequences and backups may share it.
struct Checkpoint {
    int size = 0;  // positions
    std::shared_ptr<const std::vector<std::uint8_t>> state;
};

// The saved states of a sequence, the shortest first.
using Checkpoints = std::vector<Checkpoint>;

// Limits of the kept states. Above a limit, the state whose neighbours are closest to each other is
// dropped, so the rest is spread evenly over the text.
struct CheckpointLimits {
    int most = 32;                      // per sequence
    std::size_t most_bytes = SIZE_MAX;  // of all sequences together
};

std::size_t n_bytes(const Checkpoints& checkpoints);

// As many of them as fit into most_bytes, but at least two, including the last one.
Checkpoints thinned(Checkpoints checkpoints, std::size_t most_bytes);

// Makes room for a state of `size` positions and n_bytes after those of sequences[i]; false: there
// is none. The latest states of other sequences are kept.
bool make_room(std::span<Checkpoints> sequences, std::size_t i, int size, std::size_t n_bytes,
               const CheckpointLimits& limits);

}  // namespace specllama
