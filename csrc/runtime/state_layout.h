#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// The format in which llama.cpp writes the states of a context's sequences, learned from one of
// them.
//
// llama.cpp compares the types and sizes in a state with its own, but trusts the positions: two
// cells at one position, or a negative position, make it write out of bounds later, when the cells
// are freed. So a state from outside is checked before llama.cpp reads it.
class StateLayout {
 public:
    using Bytes = std::span<const std::uint8_t>;

    // Learns from the state of a sequence with these tokens, at least one; nullopt: the format is
    // unknown.
    static std::optional<StateLayout> of(Bytes state, TokenSpan tokens);

    // Whether a state has this layout, the positions of these tokens, and finite values. The values
    // themselves cannot be checked.
    bool fits(Bytes state, TokenSpan tokens) const;

 private:
    class Reader;
    // Rows of a layer: the bytes before them, and bytes per cell.
    struct Rows {
        std::vector<std::uint8_t> header;
        std::size_t per_cell;
        int type;  // a ggml_type
    };
    // An attention memory; a context has up to three, for different layers.
    struct Attention {
        std::uint32_t n_streams;
        bool has_extra;  // cells hold more than a position
        std::vector<std::uint8_t> header;
        std::vector<Rows> rows;
    };

    bool learn(Reader reader, TokenSpan tokens);
    bool learn_attention(Reader reader, TokenSpan tokens, bool has_extra);

    std::size_t n_before_ = 0;  // bytes before the first memory
    std::vector<Attention> attention_;
    // The rest: a recurrent memory of one cell, or something else, which llama.cpp checks.
    bool recurrent_ = false;
    std::vector<Rows> states_;
    bool open_ = false;
};

}  // namespace specllama
