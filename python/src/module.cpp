#include "bind.h"
#include "constraint/llguidance.h"
#include "specllama/device.h"

// Table of contents: one bind_*.cpp per noun. Types are bound before their users.
PYBIND11_MODULE(_core, m) {
    m.doc() = "The C++ core of specllama. Use the package's own names instead.";
    m.attr("version") = specllama::version();
    m.attr("llama_cpp_version") = specllama::llama_cpp_version();
    m.def("set_verbose", &specllama::set_verbose, specllama::py::arg("verbose"));
    m.def("set_llguidance_path", &specllama::set_llguidance_path, specllama::py::arg("path"));
    specllama::bind_error(m);
    specllama::bind_device(m);
    specllama::bind_model_file(m);
    specllama::bind_media(m);
    specllama::bind_chunk(m);
    specllama::bind_cli(m);
    specllama::bind_stats(m);
    specllama::bind_trace(m);
    specllama::bind_beam(m);
    specllama::bind_stream(m);
    specllama::bind_options(m);
    specllama::bind_sampling(m);
    specllama::bind_verifier(m);
    specllama::bind_session(m);
    specllama::bind_ngram(m);
    specllama::bind_match(m);
    specllama::bind_history(m);
    specllama::bind_tokenizer(m);
    specllama::bind_corpus(m);
    specllama::py::module_ plan =
        m.def_submodule("plan", "Parts that only measurements, simulations and tests use.");
    specllama::bind_plan(plan);
    specllama::bind_follower(plan);
    specllama::bind_history_follower(plan);
    // Lets Python import the submodule by its name.
    specllama::py::module_::import("sys").attr("modules")[plan.attr("__name__")] = plan;
}
