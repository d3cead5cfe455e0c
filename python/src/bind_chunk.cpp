#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.h"

namespace specllama {

py::object to_python(FinishReason reason) {
    switch (reason) {
        case FinishReason::stop:
            return py::str("stop");
        case FinishReason::length:
            return py::str("length");
        case FinishReason::none:
            break;
    }
    return py::none();
}

FinishReason finish_reason(const std::optional<std::string>& name) {
    if (!name) return FinishReason::none;
    return *name == "stop" ? FinishReason::stop : FinishReason::length;
}

namespace {

using LogprobsState = std::tuple<Token, float, std::vector<std::pair<Token, float>>>;
using ChunkState = std::tuple<std::string, Token, bool, std::optional<TokenLogprobs>, py::object>;

}  // namespace

void bind_chunk(py::module_& m) {
    py::class_<TokenLogprobs>(m, "TokenLogprobs",
                              "Natural logarithms of probabilities at one position.")
        .def(py::init([](Token token, float logprob, std::vector<std::pair<Token, float>> top) {
                 return TokenLogprobs{token, logprob, std::move(top)};
             }),
             py::kw_only(), py::arg("token"), py::arg("logprob"), py::arg("top"))
        .def_readonly("token", &TokenLogprobs::token)
        .def_readonly("logprob", &TokenLogprobs::logprob)
        .def_readonly("top", &TokenLogprobs::top)
        .def(py::pickle(
            [](const TokenLogprobs& self) {
                return LogprobsState(self.token, self.logprob, self.top);
            },
            [](LogprobsState state) { return std::make_from_tuple<TokenLogprobs>(state); }))
        .def("__repr__", [](const TokenLogprobs& self) {
            return py::str("TokenLogprobs(token={}, logprob={:.4f}, top={})")
                .format(self.token, self.logprob, self.top);
        });
    py::class_<Chunk>(m, "Chunk",
                      "A step of a generation: a token and the text that became certain.")
        .def(py::init([](std::string text, std::optional<Token> token, bool from_draft,
                         std::optional<TokenLogprobs> logprobs,
                         const std::optional<std::string>& reason) {
                 return Chunk{.text = std::move(text),
                              .token = token.value_or(kNoToken),
                              .from_draft = from_draft,
                              .logprobs = std::move(logprobs),
                              .finish_reason = finish_reason(reason)};
             }),
             py::kw_only(), py::arg("text"), py::arg("token"), py::arg("from_draft"),
             py::arg("logprobs"), py::arg("finish_reason"))
        .def_readonly("text", &Chunk::text)
        .def_property_readonly("token",
                               [](const Chunk& chunk) {
                                   return chunk.token == kNoToken ? py::object(py::none())
                                                                  : py::int_(chunk.token);
                               })
        .def_readonly("from_draft", &Chunk::from_draft)
        .def_readonly("logprobs", &Chunk::logprobs)
        .def_property_readonly("finish_reason",
                               [](const Chunk& chunk) { return to_python(chunk.finish_reason); })
        .def(py::pickle(
            [](const Chunk& self) {
                return ChunkState(self.text, self.token, self.from_draft, self.logprobs,
                                  to_python(self.finish_reason));
            },
            [](ChunkState state) {
                auto& [text, token, from_draft, logprobs, reason] = state;
                return Chunk{
                    .text = std::move(text),
                    .token = token,
                    .from_draft = from_draft,
                    .logprobs = std::move(logprobs),
                    .finish_reason = finish_reason(reason.cast<std::optional<std::string>>())};
            }))
        .def("__repr__", [](const py::object& self) {
            return py::str("Chunk(text={!r}, token={!r}, from_draft={!r}, finish_reason={!r})")
                .format(self.attr("text"), self.attr("token"), self.attr("from_draft"),
                        self.attr("finish_reason"));
        });
}

}  // namespace specllama
