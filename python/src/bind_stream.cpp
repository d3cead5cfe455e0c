#include <optional>
#include <vector>

#include "bind.h"
#include "specllama/stream.h"

namespace specllama {

namespace {

// Reads without the GIL: reading may wait for a step in another thread, which may wait for the GIL.
template <typename Value>
auto released(Value (Stream::*read)() const) {
    return [read](const Stream& stream) {
        const py::gil_scoped_release release;
        return (stream.*read)();
    };
}

}  // namespace

void bind_stream(py::module_& m) {
    // If nobody holds a session any more, its last stream frees the model, which takes long.
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

}  // namespace specllama
