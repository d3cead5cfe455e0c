#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind.h"
#include "py_drafter.h"
#include "py_verifier.h"
#include "specllama/session.h"
#include "token_array.h"

namespace specllama {

namespace {

// Reports the progress of loading to Python, and allows Ctrl-C to end it. `progress` may be None.
ProgressFunction load_progress(const py::object& progress) {
    return [&progress](float fraction) {
        const py::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!progress.is_none()) progress(fraction);
        return true;
    };
}

// Creates the drafter given by Python. Without one, the n-gram drafter may draft.
std::shared_ptr<Drafter> make_drafter(SessionOptions& options, const py::object& drafter,
                                      const std::optional<NGramOptions>& ngram) {
    if (!drafter.is_none()) return std::make_shared<PyDrafter>(drafter);
    options.ngram = ngram;
    return nullptr;
}

// Reads a field of a session's info.
template <typename Field>
auto info(Field SessionInfo::*field) {
    return [field](const Session& session) { return session.info().*field; };
}

}  // namespace

void bind_session(py::module_& m) {
    // Freeing a model is slow, so the GIL is released.
    py::class_<Session>(m, "Session", py::release_gil_before_calling_cpp_dtor())
        .def(py::init([](SessionOptions options, const py::object& drafter,
                         const std::optional<NGramOptions>& ngram, const py::object& progress) {
                 std::shared_ptr<Drafter> made = make_drafter(options, drafter, ngram);
                 options.load_progress = load_progress(progress);
                 const py::gil_scoped_release release;
                 return std::make_unique<Session>(options, std::move(made));
             }),
             py::arg("options"), py::kw_only(), py::arg("drafter"), py::arg("ngram"),
             py::arg("progress"))
        .def(py::init([](SessionOptions options, const py::object& verifier, VerifierInfo info,
                         const py::object& drafter, const std::optional<NGramOptions>& ngram,
                         const py::object& progress) {
                 std::shared_ptr<Drafter> made = make_drafter(options, drafter, ngram);
                 auto asked = std::make_shared<PyVerifier>(verifier, std::move(info));
                 options.load_progress = load_progress(progress);
                 const py::gil_scoped_release release;
                 return std::make_unique<Session>(options, std::move(asked), std::move(made));
             }),
             py::arg("options"), py::kw_only(), py::arg("verifier"), py::arg("info"),
             py::arg("drafter"), py::arg("ngram"), py::arg("progress"))
        .def("tokenize", &tokenize<Session>, py::arg("text"), py::kw_only(), py::arg("add_special"),
             py::arg("parse_special"), py::arg("plain") = py::tuple())
        .def(
            "detokenize",
            [](const Session& session, const Tokens& tokens, bool special) {
                const py::gil_scoped_release release;
                return session.detokenize(tokens, special);
            },
            py::arg("tokens"), py::kw_only(), py::arg("special"))
        .def(
            "piece",
            [](const Session& session, Token token) { return py::bytes(session.piece(token)); },
            py::arg("token"))
        .def("vocabulary_table", &Session::vocabulary_table,
             py::call_guard<py::gil_scoped_release>())
        .def(
            "check",
            [](const Session& session, const Tokens& prompt, const GenerateOptions& options) {
                const py::gil_scoped_release release;
                session.check(prompt, options);
            },
            py::arg("prompt"), py::arg("options"))
        .def(
            "check",
            [](const Session& session, const MediaPrompt& prompt, const GenerateOptions& options) {
                const py::gil_scoped_release release;
                session.check(prompt, options);
            },
            py::arg("prompt"), py::arg("options"))
        .def_property_readonly("n_encoded", &Session::n_encoded)
        .def(
            "media_prompt",
            [](const Session& session, const py::iterable& parts) {
                std::vector<PromptPart> all;
                for (const py::handle part : parts) {
                    if (py::isinstance<Media>(part))
                        all.emplace_back(part.cast<Media>());
                    else
                        all.emplace_back(part.cast<Tokens>().to_vector());
                }
                const py::gil_scoped_release release;
                return session.media_prompt(all);
            },
            py::arg("parts"))
        .def(
            "start",
            [](Session& session, const MediaPrompt& prompt, const GenerateOptions& options) {
                const py::gil_scoped_release release;
                return session.start(prompt, options);
            },
            py::arg("prompt"), py::arg("options"))
        .def(
            "start",
            [](Session& session, const Tokens& prompt, const GenerateOptions& options) {
                const py::gil_scoped_release release;
                return session.start(prompt, options);
            },
            py::arg("prompt"), py::arg("options"))
        .def(
            "beam_search",
            [](Session& session, const Tokens& prompt, const BeamOptions& options) {
                const py::gil_scoped_release release;
                return session.beam_search(prompt, options, [] {
                    const py::gil_scoped_acquire acquire;
                    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                });
            },
            py::arg("prompt"), py::arg("options"))
        .def("step", &Session::step, py::call_guard<py::gil_scoped_release>())
        .def(
            "save",
            [](Session& session, int slot) {
                SavedState saved;
                {
                    const py::gil_scoped_release release;
                    saved = session.save(slot);
                }
                return py::make_tuple(saved.key, to_array(std::move(saved.tokens)),
                                      to_array(std::move(saved.memory)));
            },
            py::arg("slot") = -1)
        .def("erase", &Session::erase, py::arg("slot"), py::call_guard<py::gil_scoped_release>())
        .def(
            "load",
            [](Session& session, std::string key, const Tokens& tokens,
               const py::array_t<std::uint8_t, py::array::c_style>& memory, int slot) {
                const std::span bytes(memory.data(), static_cast<std::size_t>(memory.size()));
                const py::gil_scoped_release release;
                const SavedState saved{
                    std::move(key), tokens.to_vector(), {bytes.begin(), bytes.end()}};
                session.load(saved, slot);
            },
            py::arg("key"), py::arg("tokens"), py::arg("memory"), py::arg("slot") = -1)
        .def("close", &Session::close, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("closed", &Session::closed)
        .def_property_readonly("entered", &Session::entered)
        .def_property_readonly("n_ctx", info(&SessionInfo::n_ctx))
        .def_property_readonly("n_seq", info(&SessionInfo::n_seq))
        .def_property_readonly("n_free", &Session::n_free)
        .def_property_readonly("n_vocab", info(&SessionInfo::n_vocab))
        .def_property_readonly("bos", info(&SessionInfo::bos))
        .def_property_readonly("eos", info(&SessionInfo::eos))
        .def_property_readonly("fim",
                               [](const Session& session) {
                                   const FimTokens& fim = session.info().fim;
                                   return py::make_tuple(fim.prefix, fim.suffix, fim.middle,
                                                         fim.repository, fim.file);
                               })
        .def_property_readonly("chat_template", info(&SessionInfo::chat_template))
        .def_property_readonly("sees", info(&SessionInfo::sees))
        .def_property_readonly("audio_rate", info(&SessionInfo::audio_rate))
        .def_property_readonly("vocabulary", info(&SessionInfo::vocabulary))
        .def("decode_seconds", &Session::decode_seconds, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("max_draft_length", info(&SessionInfo::max_draft_length))
        .def_property_readonly("max_candidates", info(&SessionInfo::max_candidates))
        .def_property_readonly("max_draft_tokens", info(&SessionInfo::max_draft_tokens))
        .def_property_readonly("drafts_by_model", info(&SessionInfo::drafts_by_model))
        .def_property_readonly("drafts_by_ngram", info(&SessionInfo::drafts_by_ngram))
        .def_property_readonly("n_threads", info(&SessionInfo::n_threads))
        .def_property_readonly("model_description", info(&SessionInfo::description))
        .def_property_readonly("cpu_kernels", info(&SessionInfo::cpu_kernels));
}

}  // namespace specllama
