#include <optional>
#include <vector>

#include "bind.h"
#include "specllama/stream.h"

namespace specllama {

void bind_stream(py::module_& m) {
    py::class_<Stream>(m, "Stream")
        .def("step",
             [](Stream& stream) -> std::optional<std::vector<Chunk>> {
                 const py::gil_scoped_release release;
                 std::vector<Chunk> chunks;
                 if (!stream.step(chunks)) return {};
                 return chunks;
             })
        .def("cancel", &Stream::cancel)
        .def_property_readonly("done", &Stream::done)
        .def_property_readonly(
            "finish_reason", [](const Stream& stream) { return to_python(stream.finish_reason()); })
        .def_property_readonly("n_prefilled", &Stream::n_prefilled)
        .def_property_readonly("tokens",
                               [](const Stream& stream) {
                                   const TokenSpan tokens = stream.tokens();
                                   return std::vector<Token>(tokens.begin(), tokens.end());
                               })
        .def_property_readonly("text", &Stream::text)
        .def_property_readonly("stats", [](const Stream& stream) { return stream.stats(); });
}

}  // namespace specllama
