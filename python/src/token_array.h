#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>

#include "bind.h"

namespace specllama {

using TokenArray = py::array_t<Token, py::array::c_style>;

// Token ids that Python passes. An int32 array is read where it lies, and must not change until the
// call returns; any other iterable of ints is copied. Converts implicitly to a span of the ids.
class Tokens {
 public:
    Tokens() = default;
    explicit Tokens(TokenArray array) : array_(std::move(array)) {}
    explicit Tokens(std::vector<Token> copy) : copy_(std::move(copy)) {}

    operator TokenSpan() const {
        if (!array_) return copy_;
        return {array_->data(), static_cast<std::size_t>(array_->size())};
    }
    std::vector<Token> to_vector() const {
        const TokenSpan tokens = *this;
        return {tokens.begin(), tokens.end()};
    }

 private:
    std::optional<TokenArray> array_;
    std::vector<Token> copy_;
};

// Makes an array that owns the numbers, without copying them.
template <typename Number>
py::array_t<Number, py::array::c_style> to_array(std::vector<Number> numbers) {
    auto owned = std::make_unique<std::vector<Number>>(std::move(numbers));
    const auto* data = owned->data();
    const auto size = static_cast<py::ssize_t>(owned->size());
    const py::capsule owner(owned.get(),
                            [](void* one) { delete static_cast<std::vector<Number>*>(one); });
    owned.release();
    return py::array_t<Number, py::array::c_style>(size, data, owner);
}

// Tokenizes as a Tokenizer or a Session does, without the GIL.
template <typename Vocabulary>
TokenArray tokenize(const Vocabulary& vocabulary, std::string_view text, bool add_special,
                    bool parse_special,
                    const std::vector<std::pair<std::size_t, std::size_t>>& plain) {
    std::vector<Token> tokens;
    {
        const py::gil_scoped_release release;
        tokens = vocabulary.tokenize(text, add_special, parse_special, plain);
    }
    return to_array(std::move(tokens));
}

}  // namespace specllama

namespace pybind11::detail {

template <>
struct type_caster<specllama::Tokens> {
    PYBIND11_TYPE_CASTER(specllama::Tokens, const_name("collections.abc.Iterable[int]"));

    bool load(handle source, bool convert) {
        if (isinstance<specllama::TokenArray>(source)) {
            auto array = reinterpret_borrow<specllama::TokenArray>(source);
            const bool aligned = (array.flags() & npy_api::NPY_ARRAY_ALIGNED_) != 0;
            if (array.ndim() == 1 && aligned) {
                value = specllama::Tokens(std::move(array));
                return true;
            }
        }
        make_caster<std::vector<specllama::Token>> sequence;
        if (!sequence.load(source, convert)) return false;
        value = specllama::Tokens(cast_op<std::vector<specllama::Token>&&>(std::move(sequence)));
        return true;
    }
};

}  // namespace pybind11::detail
