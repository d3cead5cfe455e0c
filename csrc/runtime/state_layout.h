#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// How llama.cpp writes the states of a context's sequences, learnt from one of them.
//
// llama.cpp compares the types and sizes in a state with its own, but believes the positions: two
// cells at one position, or one at a position below 0, make it write out of bounds later, when the
// cells are freed. So a state from outside is checked before llama.cpp is given it.
class StateLayout {
 public:
    using Bytes = std::span<const std::uint8_t>;

    // Learns from the state of a sequence that holds some tokens, at least one; nullopt: it is of a
    // form that is not known here.
    static std::optional<StateLayout> of(Bytes state, TokenSpan tokens);

    // Whether a state has this layout, the positions that these tokens leave, and values that are
    // numbers. Which numbers, cannot be checked.
    bool fits(Bytes state, TokenSpan tokens) const;

 private:
    class Reader;
    // Rows of a layer: what is written before them, and bytes per cell.
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
    // What follows: a recurrent memory of one cell, or something else, which llama.cpp checks.
    bool recurrent_ = false;
    std::vector<Rows> states_;
    bool open_ = false;
};

}  // namespace specllama
