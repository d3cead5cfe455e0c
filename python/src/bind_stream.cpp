#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/beam.h"
#include "specllama/stream.h"

namespace specllama {

namespace {

// Reads without the GIL: reading may wait for a step in another thread, and that may wait for the
// GIL.
template <typename Value>
auto released(Value (Stream::*read)() const) {
    return [read](const Stream& stream) {
        const py::gil_scoped_release release;
        return (stream.*read)();
    };
}

using LogprobsState = std::tuple<Token, float, std::vector<std::pair<Token, float>>>;
using ChunkState = std::tuple<std::string, Token, bool, std::optional<TokenLogprobs>, py::object>;

}  // namespace

void bind_stream(py::module_& m) {
    // The last stream of a deleted session frees the model, which is slow.
    py::class_<Stream>(m, "Stream", py::release_gil_before_calling_cpp_dtor())
        .def("step",
             [](Stream& stream) -> std::optional<std::vector<Chunk>> {
                 const py::gil_scoped_release release;
                 std::vector<Chunk> chunks;
                 if (!stream.step(chunks)) return {};
                 return chunks;
             })
        .def("advance",
             [](Stream& stream) {
                 const py::gil_scoped_release release;
                 std::vector<Chunk> chunks;
                 return stream.step(chunks);
             })
        .def("take",
             [](Stream& stream) {
                 const py::gil_scoped_release release;
                 std::vector<Chunk> chunks;
                 stream.take(chunks);
                 return chunks;
             })
        .def("cancel", &Stream::cancel, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("done", released(&Stream::done))
        .def_property_readonly("finish_reason",
                               [](const Stream& stream) {
                                   return to_python(released(&Stream::finish_reason)(stream));
                               })
        .def_property_readonly("stop_string", released(&Stream::stop_string))
        .def_property_readonly("in_prompt", released(&Stream::in_prompt))
        .def_property_readonly("n_prefilled", released(&Stream::n_prefilled))
        .def_property_readonly("tokens", released(&Stream::tokens))
        .def_property_readonly("text", released(&Stream::text))
        .def_property_readonly("logprobs", released(&Stream::logprobs))
        .def_property_readonly("stats", released(&Stream::stats))
        .def_property_readonly("trace", released(&Stream::trace));
}

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
    py::class_<Chunk>(m, "Chunk", "A step of a generation: a token and the text that became final.")
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

void bind_beam(py::module_& m) {
    py::class_<Beam>(m, "Beam", "A text found by a beam search.")
        .def_readonly("text", &Beam::text)
        .def_readonly("tokens", &Beam::tokens)
        .def_readonly("logprob", &Beam::logprob)
        .def_readonly("score", &Beam::score)
        .def_property_readonly("finish_reason",
                               [](const Beam& beam) { return to_python(beam.finish_reason); });
    py::class_<BeamResult>(m, "BeamResult", "The result of a beam search.")
        .def_readonly("beams", &BeamResult::beams)
        .def_readonly("stats", &BeamResult::stats);
}

}  // namespace specllama
