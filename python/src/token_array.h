#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>

#include "bind.h"

namespace specllama {

// Token ids from Python. A contiguous int32 array, of NumPy or another type, is read in place, and
// must not change until the call returns. Any other iterable of ints is copied. Converts implicitly
// to a span of the ids.
class Tokens {
 public:
    Tokens() = default;
    explicit Tokens(py::buffer_info array) : array_(std::move(array)) {}
    explicit Tokens(std::vector<Token> copy) : copy_(std::move(copy)) {}

    operator TokenSpan() const {
        if (!array_) return copy_;
        return {static_cast<const Token*>(array_->ptr), static_cast<std::size_t>(array_->size)};
    }
    std::vector<Token> to_vector() const {
        const TokenSpan tokens = *this;
        return {tokens.begin(), tokens.end()};
    }

 private:
    std::optional<py::buffer_info> array_;
    std::vector<Token> copy_;
};

// Creates an array that owns the numbers, without copying them.
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

// Tokenizes with a Tokenizer or a Session, without the GIL.
template <typename Vocabulary>
std::vector<Token> tokenize(const Vocabulary& vocabulary, std::string_view text, bool add_special,
                            bool parse_special,
                            const std::vector<std::pair<std::size_t, std::size_t>>& plain) {
    const py::gil_scoped_release release;
    return vocabulary.tokenize(text, add_special, parse_special, plain);
}

}  // namespace specllama

namespace pybind11::detail {

template <>
struct type_caster<specllama::Tokens> {
    PYBIND11_TYPE_CASTER(specllama::Tokens, const_name("collections.abc.Iterable[int]"));

    bool load(handle source, bool convert) {
        // Uses the buffer protocol, since a check for NumPy arrays would import NumPy.
        if (auto view = std::make_unique<Py_buffer>();
            PyObject_CheckBuffer(source.ptr()) != 0 &&
            PyObject_GetBuffer(source.ptr(), view.get(), PyBUF_FORMAT | PyBUF_ND) == 0) {
            buffer_info array(view.release());
            const auto place = reinterpret_cast<std::uintptr_t>(array.ptr);
            if (array.ndim == 1 && place % alignof(specllama::Token) == 0 &&
                array.item_type_is_equivalent_to<specllama::Token>()) {
                value = specllama::Tokens(std::move(array));
                return true;
            }
        }
        PyErr_Clear();  // not contiguous, or not a buffer
        make_caster<std::vector<specllama::Token>> sequence;
        if (!sequence.load(source, convert)) return false;
        value = specllama::Tokens(cast_op<std::vector<specllama::Token>&&>(std::move(sequence)));
        return true;
    }
};

}  // namespace pybind11::detail
