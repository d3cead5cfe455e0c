#include "py_drafter.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "draft/ngram/ngram_predictor.h"
#include "drafted_tokens.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Copies the tokens, since the drafter may keep the array.
py::array_t<Token> to_array(TokenSpan tokens) {
    return py::array_t<Token>(static_cast<py::ssize_t>(tokens.size()), tokens.data());
}

Token read_id(const py::handle& item) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
    if (!index) throw py::error_already_set();
    const long long id = PyLong_AsLongLong(index.ptr());
    if (id == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (id < 0 || id > std::numeric_limits<Token>::max())
        throw DrafterError("The drafter proposed token " + std::to_string(id) +
                           ", which is not a token id.");
    return static_cast<Token>(id);
}

// Adds a token to a draft. A plain id has no confidence; predictions of this package's own finders
// have one.
void read_token(const py::handle& item, Draft& draft) {
    if (py::isinstance<MatchedToken>(item)) {
        const auto& copied = item.cast<const MatchedToken&>();
        draft.push(copied.token, {Source::match, copied.length});
    } else if (py::isinstance<NGramPredictor::Prediction>(item)) {
        const auto& counted = item.cast<const NGramPredictor::Prediction&>();
        draft.push(counted.token, {Source::ngram, counted.order, counted.confidence()});
    } else {
        draft.push(read_id(item), {});
    }
}

// Reads the tokens of a chain, at most one more than `max_tokens`, so that an endless iterator does
// no harm.
void read_chain(const py::handle& tokens, int max_tokens, Draft& chain) {
    for (const py::handle item : py::reinterpret_borrow<py::iterable>(tokens)) {
        read_token(item, chain);
        if (chain.size() > max_tokens) return;
    }
}

// Adds a chain to a draft as a branch, without their common beginning.
void add_chain(const Draft& chain, Draft& draft) {
    const auto same = std::ranges::mismatch(chain.tokens, draft.tokens).in1;
    const auto depth = static_cast<int>(same - chain.tokens.begin());
    for (int i = depth; i < chain.size(); ++i) {
        if (i == depth)
            draft.push_branch(depth, chain.tokens[i], chain.evidence[i]);
        else
            draft.extend_branch(chain.tokens[i], chain.evidence[i]);
    }
}

// Reads a draft: tokens, or chains of tokens. The first chain that is not empty is the main path.
void read_draft(const py::object& answer, int max_tokens, Draft& draft) {
    if (answer.is_none()) return;
    int n_chains = 0;
    for (const py::handle item : py::reinterpret_borrow<py::iterable>(answer)) {
        if (!PySequence_Check(item.ptr())) {
            read_token(item, draft);
            if (draft.size() > max_tokens) return;
            continue;
        }
        Draft chain;
        read_chain(item, max_tokens, chain);
        if (draft.empty())
            draft = chain;
        else
            add_chain(chain, draft);
        if (++n_chains == kMaxSpecLength) return;
    }
}

// "ValueError: its message", or only the name if there is no message.
std::string describe(const py::error_already_set& error) {
    auto name = error.type().attr("__name__").cast<std::string>();
    try {
        const py::object text = py::str(error.value()).attr("encode")("utf-8", "backslashreplace");
        return name + ": " + text.cast<std::string>();
    } catch (const py::error_already_set&) {
        return name;  // its __str__ raises
    }
}

template <typename Call>
void call_python(Call call) {
    const py::gil_scoped_acquire acquire;
    try {
        call();
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        throw DrafterError("The drafter raised " + describe(error));
    }
}

}  // namespace

PyDrafter::PyDrafter(py::object drafter) : drafter_(std::move(drafter)) {}

PyDrafter::~PyDrafter() {  // NOLINT(bugprone-exception-escape): taking the GIL
    const py::gil_scoped_acquire acquire;
    drafter_ = py::object();
}

void PyDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan) {
    call_python([&] { drafter_.attr("begin")(sequence, to_array(prompt)); });
}

void PyDrafter::propose(std::span<Proposal> proposals) {
    const py::gil_scoped_acquire acquire;  // once for all proposals
    for (Proposal& proposal : proposals) {
        // A Python drafter gets only committed tokens, so it cannot continue another drafter's
        // draft.
        if (proposal.max_tokens == 0 || !proposal.draft.empty()) continue;
        try {
            call_python([&] {
                const py::object answer = drafter_.attr("propose")(
                    proposal.sequence, to_array(proposal.tokens), proposal.max_tokens);
                read_draft(answer, proposal.max_tokens, proposal.draft);
            });
        } catch (const DrafterError& error) {
            proposal.error = error.what();
        }
    }
}

void PyDrafter::observe(SequenceId sequence, const Draft& draft, int n_accepted, Token next) {
    call_python(
        [&] { drafter_.attr("observe")(sequence, to_array(draft.tokens), n_accepted, next); });
}

void PyDrafter::end(SequenceId sequence) {
    call_python([&] { drafter_.attr("end")(sequence); });
}

}  // namespace specllama
