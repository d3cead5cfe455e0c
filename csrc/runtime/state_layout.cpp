#include "runtime/state_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ggml.h"

namespace specllama {

namespace {

constexpr std::size_t kStateHeader = 8;           // llama.cpp's mark, and the id of the sequence
constexpr std::uint32_t kDeepSeek4 = 0x34565344;  // first number of this architecture's memory
constexpr std::size_t kDeepSeek4Header = 12;
constexpr std::size_t kLayersHeader = 8;       // transposed or not, number of layers
constexpr std::size_t kRowsHeader = 12;        // type, bytes of a row
constexpr std::size_t kTransposedHeader = 12;  // type, bytes of an element, elements of a row

}  // namespace

// Reads forward. A read past the end fails, and all later ones do.
class StateLayout::Reader {
 public:
    explicit Reader(Bytes bytes) : rest_(bytes) {}

    bool failed() const { return failed_; }
    bool done() const { return !failed_ && rest_.empty(); }

    Bytes bytes(std::size_t n) {
        if (n > rest_.size()) failed_ = true;
        if (failed_) return {};
        const Bytes read = rest_.first(n);
        rest_ = rest_.subspan(n);
        return read;
    }
    template <typename Number = std::uint32_t>
    Number number() {
        Number value{};
        const Bytes read = bytes(sizeof(value));
        if (!read.empty()) std::memcpy(&value, read.data(), sizeof(value));
        return value;
    }
    bool skip(std::size_t n, std::size_t each) {
        if (each > 0 && n > rest_.size() / each) failed_ = true;
        bytes(failed_ ? 0 : n * each);
        return !failed_;
    }
    // Reads the rows of n cells; returns whether they match `rows`.
    bool rows(const Rows& rows, std::size_t n) {
        if (!std::ranges::equal(bytes(rows.header.size()), rows.header) || failed_) return false;
        const Bytes before = rest_;
        return skip(n, rows.per_cell) && ggml_validate_row_data(static_cast<ggml_type>(rows.type),
                                                                before.data(), n * rows.per_cell);
    }

    // Reads the number of cells in each stream, of which only one has cells, and these cells.
    // Returns their number, or 0 if they are not at the last positions of the text, one cell each.
    // (The cells of an image may all be at its first position.)
    std::size_t cells(std::uint32_t n_streams, TokenSpan tokens, bool has_extra);
    // Reads the streams after the one with cells; returns whether they are empty.
    bool ends_streams() {
        for (; n_after_ > 0; --n_after_)
            if (number() != 0) return false;
        return !failed_;
    }
    // Reads the beginning of a recurrent memory: one cell, at the last position.
    bool recurrent(TokenSpan tokens) {
        const bool has_one = number() == 1;
        const auto position = number();
        const bool is_last =
            position == tokens.size() - 1 ||
            (position < tokens.size() && is_media(tokens[position]) && is_media(tokens.back()));
        return has_one && is_last && number() == 0 && !failed_;
    }

 private:
    Bytes rest_;
    std::uint32_t n_after_ = 0;
    bool failed_ = false;
};

std::size_t StateLayout::Reader::cells(std::uint32_t n_streams, TokenSpan tokens, bool has_extra) {
    std::uint32_t n = 0;
    for (n_after_ = n_streams; n == 0 && n_after_ > 0 && !failed_; --n_after_) n = number();
    std::vector<bool> found(tokens.size());
    std::size_t first = tokens.size();
    for (std::uint32_t i = 0; i < n; ++i) {
        const auto position = number();
        const bool has_one_sequence = number() == 1;
        if (has_extra) skip(2, sizeof(std::int32_t));  // place in an image
        const auto token = has_extra ? number<Token>() : 0;
        number();  // the sequence's id, which may have changed
        if (failed_ || !has_one_sequence || position >= tokens.size()) return 0;
        if (!is_media(tokens[position]) &&
            (found[position] || (has_extra && token != tokens[position])))
            return 0;
        found[position] = true;
        first = std::min<std::size_t>(first, position);
    }
    for (std::size_t position = first; position < tokens.size(); ++position)
        if (!found[position] && !is_media(tokens[position])) return 0;
    return failed_ ? 0 : n;
}

std::optional<StateLayout> StateLayout::of(Bytes state, TokenSpan tokens) {
    StateLayout layout;
    Reader reader(state);
    reader.bytes(kStateHeader);
    Reader ahead = reader;
    layout.open_ = ahead.number() == kDeepSeek4;
    layout.n_before_ = kStateHeader + (layout.open_ ? kDeepSeek4Header : 0);
    if (layout.open_) reader.bytes(kDeepSeek4Header);
    if (tokens.empty() || !layout.learn(reader, tokens)) return std::nullopt;
    return layout;
}

// Tries the possible continuations; the first one that reads exactly to the end is right.
bool StateLayout::learn(Reader reader, TokenSpan tokens) {
    if (reader.done()) return true;
    if (learn_attention(reader, tokens, false) || learn_attention(reader, tokens, true))
        return true;
    if (open_) return !attention_.empty();
    if (!reader.recurrent(tokens)) return false;
    std::vector<Rows> states{{{}, kLayersHeader, GGML_TYPE_I8}};
    reader.bytes(kLayersHeader);
    while (!reader.done()) {
        const Bytes header = reader.bytes(kRowsHeader);
        Reader numbers(header);
        const auto type = numbers.number();
        const auto size = numbers.number<std::uint64_t>();
        if (type >= GGML_TYPE_COUNT || !reader.skip(1, size)) return false;
        states.push_back({{header.begin(), header.end()}, size, static_cast<int>(type)});
    }
    states_ = std::move(states);
    return recurrent_ = true;
}

bool StateLayout::learn_attention(Reader reader, TokenSpan tokens, bool has_extra) {
    Attention attention{reader.number(), has_extra, {}, {}};
    const std::size_t n = reader.cells(attention.n_streams, tokens, has_extra);
    if (n == 0) return false;
    const Bytes header = reader.bytes(kLayersHeader);
    attention.header.assign(header.begin(), header.end());
    Reader numbers(header);
    const bool transposed = numbers.number() != 0;
    const std::uint32_t n_layers = numbers.number();
    const auto read_rows = [&](bool as_columns) {
        const Bytes bytes = reader.bytes(as_columns ? kTransposedHeader : kRowsHeader);
        Reader sizes(bytes);
        const auto type = sizes.number();
        const std::uint64_t size = as_columns ? std::uint64_t{sizes.number()} * sizes.number()
                                              : sizes.number<std::uint64_t>();
        if (reader.failed() || type >= GGML_TYPE_COUNT || !reader.skip(n, size)) return false;
        attention.rows.push_back({{bytes.begin(), bytes.end()}, size, static_cast<int>(type)});
        return true;
    };
    for (std::uint32_t i = 0; i < n_layers; ++i)
        if (!read_rows(false)) return false;
    const auto try_rest = [&] {
        Reader rest = reader;
        if (!rest.ends_streams()) return false;
        attention_.push_back(attention);
        if (learn(rest, tokens)) return true;
        attention_.pop_back();
        return false;
    };
    // Some models keep no values, or not in every layer.
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        if (try_rest()) return true;
        if (!read_rows(transposed)) return false;
    }
    return try_rest();
}

bool StateLayout::fits(Bytes state, TokenSpan tokens) const {
    Reader reader(state);
    reader.bytes(n_before_);
    for (const Attention& attention : attention_) {
        if (reader.number() != attention.n_streams) return false;
        const std::size_t n = reader.cells(attention.n_streams, tokens, attention.has_extra);
        if (n == 0 || !std::ranges::equal(reader.bytes(kLayersHeader), attention.header))
            return false;
        for (const Rows& rows : attention.rows)
            if (!reader.rows(rows, n)) return false;
        if (!reader.ends_streams()) return false;
    }
    if (recurrent_ && !reader.recurrent(tokens)) return false;
    for (const Rows& rows : states_)
        if (!reader.rows(rows, 1)) return false;
    return open_ || reader.done();
}

}  // namespace specllama
