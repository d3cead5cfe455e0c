#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "py_drafter.h"
#include "specllama/session.h"

namespace specllama {

namespace {

// Reports loading to Python, and lets Ctrl-C end it. `progress` may be None.
ProgressFunction load_progress(const py::object& progress) {
    return [&progress](float fraction) {
        const py::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!progress.is_none()) progress(fraction);
        return true;
    };
}

// None: wherever the device has it.
FlashAttention flash_attention(std::optional<bool> wish) {
    if (!wish) return FlashAttention::automatic;
    return *wish ? FlashAttention::on : FlashAttention::off;
}

// None: where it costs next to nothing.
Exact exactness(std::optional<bool> wish) {
    if (!wish) return Exact::automatic;
    return *wish ? Exact::on : Exact::off;
}

}  // namespace

void bind_session(py::module_& m) {
    py::class_<NGramOptions>(m, "NGramOptions")
        .def(py::init([](int max_order, int window, std::size_t max_bytes, bool draw) {
                 return NGramOptions{max_order, window, max_bytes, draw};
             }),
             py::kw_only(), py::arg("max_order"), py::arg("window"), py::arg("max_bytes"),
             py::arg("draw"));

    py::class_<DraftModelOptions>(m, "DraftModelOptions")
        .def(py::init([](const std::string& path, std::optional<int> n_gpu_layers,
                         const std::string& device, int n_threads, std::optional<bool> flash_attn,
                         std::optional<std::string> kv_type, double p_min,
                         std::optional<double> temperature, std::optional<int> top_k,
                         std::optional<double> top_p, std::optional<double> min_p) {
                 return DraftModelOptions{
                     .model = {.path = path, .n_gpu_layers = n_gpu_layers, .device = device},
                     .context = {.n_threads = n_threads,
                                 .flash_attn = flash_attention(flash_attn),
                                 .kv_type = kv_type},
                     .p_min = p_min,
                     .temperature = temperature,
                     .top_k = top_k,
                     .top_p = top_p,
                     .min_p = min_p};
             }),
             py::kw_only(), py::arg("path"), py::arg("n_gpu_layers"), py::arg("device"),
             py::arg("n_threads"), py::arg("flash_attn"), py::arg("kv_type"), py::arg("p_min"),
             py::arg("temperature"), py::arg("top_k"), py::arg("top_p"), py::arg("min_p"));

    py::class_<Session>(m, "Session")
        .def(py::init([](const std::string& path, const py::object& drafter,
                         const std::optional<NGramOptions>& ngram,
                         const std::optional<DraftModelOptions>& draft_model,
                         std::optional<int> n_gpu_layers, const std::string& device, int n_ctx,
                         int n_seq, int n_batch, int n_threads, std::optional<bool> flash_attn,
                         std::optional<std::string> kv_type, std::optional<int> spec_length,
                         const std::string& corpus, std::optional<bool> exact,
                         const py::object& progress) {
                 std::shared_ptr<Drafter> made;
                 if (!drafter.is_none())
                     made = std::make_shared<PyDrafter>(drafter);
                 else if (ngram)
                     made = make_ngram_drafter(*ngram);
                 SessionOptions options{
                     .model = {.path = path, .n_gpu_layers = n_gpu_layers, .device = device},
                     .context = {.n_ctx = n_ctx,
                                 .n_seq = n_seq,
                                 .n_batch = n_batch,
                                 .n_threads = n_threads,
                                 .flash_attn = flash_attention(flash_attn),
                                 .kv_type = kv_type},
                     .spec_length = spec_length,
                     .draft_model = draft_model,
                     .corpus = corpus,
                     .exact = exactness(exact),
                     .load_progress = load_progress(progress),
                 };
                 const py::gil_scoped_release release;
                 return std::make_unique<Session>(options, std::move(made));
             }),
             py::kw_only(), py::arg("path"), py::arg("drafter"), py::arg("ngram"),
             py::arg("draft_model"), py::arg("n_gpu_layers"), py::arg("device"), py::arg("n_ctx"),
             py::arg("n_seq"), py::arg("n_batch"), py::arg("n_threads"), py::arg("flash_attn"),
             py::arg("kv_type"), py::arg("spec_length"), py::arg("corpus"), py::arg("exact"),
             py::arg("progress"))
        .def("tokenize", &Session::tokenize, py::call_guard<py::gil_scoped_release>(),
             py::arg("text"), py::kw_only(), py::arg("add_special"), py::arg("parse_special"))
        .def(
            "detokenize",
            [](const Session& session, const std::vector<Token>& tokens, bool special) {
                const py::gil_scoped_release release;
                return session.detokenize(tokens, special);
            },
            py::arg("tokens"), py::kw_only(), py::arg("special"))
        .def(
            "check",
            [](const Session& session, const std::vector<Token>& prompt,
               std::optional<int> max_tokens, std::vector<std::string> stop,
               std::vector<Token> reference) {
                GenerateOptions options;
                options.max_tokens = max_tokens;
                options.stop = std::move(stop);
                options.reference = std::move(reference);
                session.check(prompt, options);
            },
            py::arg("prompt"), py::kw_only(), py::arg("max_tokens"), py::arg("stop"),
            py::arg("reference"))
        .def(
            "start",
            [](Session& session, const std::vector<Token>& prompt, std::optional<int> max_tokens,
               std::vector<std::string> stop, const SamplingOptions& sampling,
               std::vector<Token> reference, std::vector<Token> replayed, bool trace) {
                const py::gil_scoped_release release;
                return session.start(prompt, {max_tokens, std::move(stop), sampling,
                                              std::move(reference), std::move(replayed), trace});
            },
            py::arg("prompt"), py::kw_only(), py::arg("max_tokens"), py::arg("stop"),
            py::arg("sampling"), py::arg("reference"), py::arg("replayed"), py::arg("trace"))
        .def("step", &Session::step, py::call_guard<py::gil_scoped_release>())
        .def("save",
             [](Session& session) {
                 SavedState saved;
                 {
                     const py::gil_scoped_release release;
                     saved = session.save();
                 }
                 return py::make_tuple(saved.key, saved.tokens,
                                       py::bytes(reinterpret_cast<const char*>(saved.memory.data()),
                                                 saved.memory.size()));
             })
        .def(
            "load",
            [](Session& session, std::string key, std::vector<Token> tokens,
               const py::bytes& memory) {
                const std::string_view view = memory;
                SavedState saved{std::move(key), std::move(tokens), {view.begin(), view.end()}};
                const py::gil_scoped_release release;
                session.load(saved);
            },
            py::arg("key"), py::arg("tokens"), py::arg("memory"))
        .def("close", &Session::close, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("closed", &Session::closed)
        .def_property_readonly("entered", &Session::entered)
        .def_property_readonly("n_ctx", &Session::n_ctx)
        .def_property_readonly("n_seq", &Session::n_seq)
        .def_property_readonly("n_free", &Session::n_free)
        .def_property_readonly("n_vocab", &Session::n_vocab)
        .def_property_readonly("bos", &Session::bos)
        .def_property_readonly("eos", &Session::eos)
        .def_property_readonly("chat_template", &Session::chat_template)
        .def_property_readonly("n_threads", &Session::n_threads)
        .def_property_readonly("model_description", &Session::model_description);
}

}  // namespace specllama
