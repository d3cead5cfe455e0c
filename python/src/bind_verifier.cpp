#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/verifier.h"

namespace specllama {

namespace {

FimTokens fim_tokens(const std::vector<Token>& fim) {
    return {fim.at(0), fim.at(1), fim.at(2), fim.at(3), fim.at(4)};
}

}  // namespace

void bind_verifier(py::module_& m) {
    py::class_<VocabularyTable>(m, "VocabularyTable", "A vocabulary without its tokenizer.")
        .def(py::init([](std::vector<std::string> pieces, std::vector<Token> hidden,
                         std::vector<Token> ends, std::uint64_t fingerprint) {
                 return VocabularyTable{std::move(pieces), std::move(hidden), std::move(ends),
                                        fingerprint};
             }),
             py::kw_only(), py::arg("pieces"), py::arg("hidden"), py::arg("ends"),
             py::arg("fingerprint"))
        .def_property_readonly("pieces",
                               [](const VocabularyTable& table) {
                                   py::list pieces;
                                   for (const std::string& piece : table.pieces)
                                       pieces.append(py::bytes(piece));
                                   return pieces;
                               })
        .def_readonly("hidden", &VocabularyTable::hidden)
        .def_readonly("ends", &VocabularyTable::ends)
        .def_readonly("fingerprint", &VocabularyTable::text_fingerprint);
    py::class_<VerifierInfo>(m, "VerifierInfo", "Properties of a remote target.")
        .def(py::init([](std::string description, std::string kernels, int n_ctx, int n_threads,
                         std::uint64_t vocabulary, Token bos, Token eos,
                         const std::vector<Token>& fim, std::optional<std::string> chat_template,
                         int max_draft_length, int max_candidates, int max_draft_tokens,
                         VocabularyTable table, std::vector<double> decode_seconds,
                         std::vector<double> round_trips) {
                 const auto n_vocab = static_cast<int>(table.pieces.size());
                 return VerifierInfo{.session = {.description = std::move(description),
                                                 .n_vocab = n_vocab,
                                                 .vocabulary = vocabulary,
                                                 .bos = bos,
                                                 .eos = eos,
                                                 .fim = fim_tokens(fim),
                                                 .chat_template = std::move(chat_template),
                                                 .n_ctx = n_ctx,
                                                 .n_seq = 0,
                                                 .n_threads = n_threads,
                                                 .cpu_kernels = std::move(kernels),
                                                 .max_draft_length = max_draft_length,
                                                 .max_candidates = max_candidates,
                                                 .max_draft_tokens = max_draft_tokens},
                                     .vocabulary = std::move(table),
                                     .decode_seconds = std::move(decode_seconds),
                                     .round_trips = std::move(round_trips)};
             }),
             py::kw_only(), py::arg("description"), py::arg("kernels"), py::arg("n_ctx"),
             py::arg("n_threads"), py::arg("vocabulary"), py::arg("bos"), py::arg("eos"),
             py::arg("fim"), py::arg("chat_template"), py::arg("max_draft_length"),
             py::arg("max_candidates"), py::arg("max_draft_tokens"), py::arg("table"),
             py::arg("decode_seconds"), py::arg("round_trips"));
    py::class_<VerifyAnswer>(m, "VerifyAnswer", "A remote target's answer to a draft.")
        .def(py::init([](std::vector<Token> tokens, std::vector<TokenLogprobs> logprobs,
                         double seconds, int n_verified, const std::optional<std::string>& reason,
                         bool exact, int n_reused) {
                 return VerifyAnswer{.tokens = std::move(tokens),
                                     .logprobs = std::move(logprobs),
                                     .seconds = seconds,
                                     .n_verified = n_verified,
                                     .finish_reason = finish_reason(reason),
                                     .exact = exact,
                                     .n_reused = n_reused,
                                     .error = nullptr};
             }),
             py::kw_only(), py::arg("tokens"), py::arg("logprobs"), py::arg("seconds"),
             py::arg("n_verified"), py::arg("finish_reason"), py::arg("exact"), py::arg("n_reused"))
        .def_readonly("tokens", &VerifyAnswer::tokens)
        .def_readonly("logprobs", &VerifyAnswer::logprobs)
        .def_readonly("seconds", &VerifyAnswer::seconds)
        .def_readonly("n_verified", &VerifyAnswer::n_verified)
        .def_property_readonly(
            "finish_reason",
            [](const VerifyAnswer& answer) { return to_python(answer.finish_reason); })
        .def_readonly("exact", &VerifyAnswer::exact)
        .def_readonly("n_reused", &VerifyAnswer::n_reused);
}

}  // namespace specllama
