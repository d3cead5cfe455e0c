#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>

#include "bind.h"
#include "sample/noise.h"
#include "sample/probability.h"
#include "sample/sampler.h"
#include "specllama/error.h"
#include "specllama/generate_options.h"
#include "token_array.h"

namespace specllama {

namespace {

using Logits = py::array_t<float, py::array::c_style>;

// A copy, since choosing changes the logits.
std::vector<float> copy(const Logits& logits) {
    return {logits.data(), logits.data() + logits.size()};
}

// Throws InvalidArgument unless there is one logit per token of the vocabulary, and the context has
// only tokens of the vocabulary.
void check(const Sampler& sampler, const Logits& logits, TokenSpan context = {}) {
    const auto n_vocab = static_cast<py::ssize_t>(sampler.n_vocab());
    if (logits.size() != n_vocab)
        throw InvalidArgument("There must be " + std::to_string(n_vocab) + " logits, not " +
                              std::to_string(logits.size()) + ".");
    for (const Token token : context)
        if (token < 0 || token >= n_vocab)
            throw InvalidArgument("The context holds token " + std::to_string(token) + " of " +
                                  std::to_string(n_vocab) + ".");
}

// A context of first + count tokens 0, of which only the positions matter.
std::vector<Token> some_context(int first, int count) {
    constexpr int kMost = 1 << 24;
    if (first < 0 || count < 0 || first > kMost - count)
        throw InvalidArgument("first and count must be 0 or more, and small.");
    return std::vector<Token>(static_cast<std::size_t>(first + count), 0);
}

// Returns [count, n_guesses + 1]: for each of `count` positions from `first` on, the drafted tokens
// and then the target's choice.
py::array_t<Token> speculate_many(Sampler& sampler, const Logits& logits, const Logits& draft,
                                  int first, int count, bool point_mass, int n_guesses) {
    if (n_guesses < 1 || n_guesses > kMaxTreeWidth)
        throw InvalidArgument("n_guesses must be from 1 to " + std::to_string(kMaxTreeWidth) +
                              ", not " + std::to_string(n_guesses) + ".");
    check(sampler, logits);
    check(sampler, draft);
    const std::vector<Token> context = some_context(first, count);
    py::array_t<Token> out({count, n_guesses + 1});
    auto cells = out.mutable_unchecked<2>();
    Distribution drawn_from;
    std::vector<Token> drafted(n_guesses);
    std::vector<Guess> guesses;
    const bool with_distribution = sampler.rejects() && !point_mass;
    for (int i = 0; i < count; ++i) {
        const TokenSpan before = TokenSpan(context).first(first + i);
        std::vector<float> row = copy(draft);
        drafted[0] = sampler.draft(row, before, drawn_from, std::span(drafted).subspan(1));
        guesses.clear();
        for (int k = 0; k < n_guesses; ++k) {
            cells(i, k) = drafted[k];
            if (drafted[k] >= 0)
                guesses.push_back({drafted[k], with_distribution ? &drawn_from : nullptr});
        }
        row = copy(logits);
        cells(i, n_guesses) = sampler.choose(row, before, guesses);
    }
    return out;
}

// texts: texts of the tokens, by id; later tokens have no text.
std::unique_ptr<Sampler> make_sampler(const SamplingOptions& options, std::size_t n_vocab,
                                      std::vector<py::bytes> texts) {
    return std::make_unique<Sampler>(options, n_vocab, nullptr,
                                     [texts = std::vector<std::string>(texts.begin(), texts.end())](
                                         Token token, std::string& out) {
                                         if (static_cast<std::size_t>(token) < texts.size())
                                             out += texts[token];
                                     });
}

}  // namespace

void bind_sampling(py::module_& m) {
    py::class_<Sampler>(m, "Sampler", "The choice rule, which chooses a token from logits.")
        .def(py::init(&make_sampler), py::arg("options"), py::arg("n_vocab"),
             py::arg("texts") = std::vector<py::bytes>())
        .def(
            "choose",
            [](Sampler& sampler, const Logits& logits, const Tokens& context) {
                check(sampler, logits, context);
                std::vector<float> row = copy(logits);
                return sampler.choose(row, context);
            },
            py::arg("logits"), py::arg("context"))
        .def(
            "choose_many",
            [](Sampler& sampler, const Logits& logits, int first, int count) {
                check(sampler, logits);
                const std::vector<Token> context = some_context(first, count);
                std::vector<float> row;
                std::vector<Token> chosen(static_cast<std::size_t>(count));
                for (int i = 0; i < count; ++i) {
                    row.assign(logits.data(), logits.data() + logits.size());
                    chosen[i] = sampler.choose(row, TokenSpan(context).first(first + i));
                }
                return to_array(std::move(chosen));
            },
            py::arg("logits"), py::arg("first"), py::arg("count"))
        .def("speculate_many", &speculate_many, py::arg("logits"), py::arg("draft_logits"),
             py::arg("first"), py::arg("count"), py::arg("point_mass") = false,
             py::arg("n_guesses") = 1)
        .def_property_readonly("seed", &Sampler::seed);
    m.def("gumbel", &gumbel, py::arg("bits"));
    m.def(
        "probability",
        [](const Logits& logits, Token token) {
            if (token < 0 || token >= logits.size())
                throw InvalidArgument("Token " + std::to_string(token) + " is out of range.");
            return probability({logits.data(), static_cast<std::size_t>(logits.size())}, token);
        },
        py::arg("logits"), py::arg("token"));
    m.def("choice_seed", &choice_seed, py::arg("seed"), py::arg("choice"));
}

}  // namespace specllama
