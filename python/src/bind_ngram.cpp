#include <array>
#include <vector>

#include "bind.h"
#include "draft/ngram/ngram_predictor.h"
#include "token_arguments.h"
#include "token_array.h"

namespace specllama {

namespace {

std::vector<NGramPredictor::Prediction> predict(const NGramPredictor& predictor, int n) {
    check_draft_length(n);
    std::array<NGramPredictor::Prediction, kMaxSpecLength> out;
    const std::size_t found = predictor.predict(std::span(out).first(n));
    return {out.begin(), out.begin() + found};
}

}  // namespace

void bind_ngram(py::module_& m) {
    py::class_<NGramPredictor::Prediction>(
        m, "Prediction",
        "A token that n-grams predict, with their order and its relative frequency.")
        .def_readonly("token", &NGramPredictor::Prediction::token)
        .def_readonly("order", &NGramPredictor::Prediction::order)
        .def_readonly("frequency", &NGramPredictor::Prediction::frequency)
        .def_property_readonly("confidence", &NGramPredictor::Prediction::confidence)
        .def("__repr__", [](const NGramPredictor::Prediction& prediction) {
            return py::str("Prediction(token={}, order={}, frequency={:.3f})")
                .format(prediction.token, prediction.order, prediction.frequency);
        });
    const NGramOptions defaults;
    py::class_<NGramPredictor>(
        m, "NGramPredictor",
        "Predicts tokens from what followed the same few tokens before: frequency tables of every\n"
        "order from 2 to max_order, contexts hashed with 64-bit FNV-1a, the longest one first.")
        .def(py::init([](int max_order, int window, std::size_t max_bytes) {
                 return NGramPredictor({max_order, window, max_bytes, false});
             }),
             py::kw_only(), py::arg("max_order") = defaults.max_order,
             py::arg("window") = defaults.window, py::arg("max_bytes") = defaults.max_bytes)
        .def(
            "update",
            [](NGramPredictor& predictor, Token token) {
                check_token(token);
                predictor.update(token);
            },
            py::arg("token"))
        .def(
            "update_batch",
            [](NGramPredictor& predictor, const Tokens& tokens) {
                for (const Token token : TokenSpan(tokens)) check_token(token);
                predictor.update_batch(tokens);
            },
            py::arg("tokens"))
        .def("predict", &predict, py::arg("n") = 4)
        .def_property_readonly("size_bytes", &NGramPredictor::size_bytes)
        .def_property_readonly("capacity", &NGramPredictor::capacity);
}

}  // namespace specllama
