#pragma once

// The header that all binding files include: pybind11 and common declarations.

#include <optional>
#include <string>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "specllama/types.h"

namespace specllama {

namespace py = pybind11;

void bind_beam(py::module_& m);
void bind_chunk(py::module_& m);
void bind_cli(py::module_& m);
void bind_corpus(py::module_& m);
void bind_device(py::module_& m);
void bind_error(py::module_& m);
void bind_follower(py::module_& m);
void bind_history(py::module_& m);
void bind_history_follower(py::module_& m);
void bind_media(py::module_& m);
void bind_model_file(py::module_& m);
void bind_match(py::module_& m);
void bind_ngram(py::module_& m);
void bind_options(py::module_& m);
void bind_plan(py::module_& m);
void bind_sampling(py::module_& m);
void bind_session(py::module_& m);
void bind_stats(py::module_& m);
void bind_stream(py::module_& m);
void bind_tokenizer(py::module_& m);
void bind_trace(py::module_& m);
void bind_verifier(py::module_& m);

// "stop", "length", or None while a generation is unfinished.
py::object to_python(FinishReason reason);
FinishReason finish_reason(const std::optional<std::string>& name);

}  // namespace specllama
