#include "bind.h"
#include "specllama/beam.h"

namespace specllama {

void bind_beam(py::module_& m) {
    py::class_<Beam>(m, "Beam", "A text that a beam search found.")
        .def_readonly("text", &Beam::text)
        .def_readonly("tokens", &Beam::tokens)
        .def_readonly("logprob", &Beam::logprob)
        .def_readonly("score", &Beam::score)
        .def_property_readonly("finish_reason",
                               [](const Beam& beam) { return to_python(beam.finish_reason); });
    py::class_<BeamResult>(m, "BeamResult", "What a beam search came to.")
        .def_readonly("beams", &BeamResult::beams)
        .def_readonly("stats", &BeamResult::stats);
}

}  // namespace specllama
