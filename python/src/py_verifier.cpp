#include "py_verifier.h"

#include <exception>
#include <utility>

#include "token_array.h"

namespace specllama {

namespace {

py::array_t<Token> copy_of(TokenSpan tokens) {
    return to_array(std::vector<Token>(tokens.begin(), tokens.end()));
}

VerifyAnswer read_answer(const py::handle& answer) {
    if (!PyExceptionInstance_Check(answer.ptr())) return answer.cast<VerifyAnswer>();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(answer.ptr())), answer.ptr());
    VerifyAnswer failed;
    failed.error = std::make_exception_ptr(py::error_already_set());
    return failed;
}

}  // namespace

PyVerifier::PyVerifier(py::object verifier, VerifierInfo info)
    : verifier_(std::move(verifier)), info_(std::move(info)) {}

PyVerifier::~PyVerifier() {  // NOLINT(bugprone-exception-escape): taking the GIL
    const py::gil_scoped_acquire acquire;
    verifier_ = py::object();
}

std::vector<Token> PyVerifier::tokenize(std::string_view text, bool add_special, bool parse_special,
                                        TextRanges plain) const {
    const py::gil_scoped_acquire acquire;
    const std::vector<std::pair<std::size_t, std::size_t>> parts(plain.begin(), plain.end());
    using namespace py::literals;
    return verifier_
        .attr("tokenize")(py::str(text.data(), text.size()), "add_special"_a = add_special,
                          "parse_special"_a = parse_special, "plain"_a = parts)
        .cast<std::vector<Token>>();
}

std::string PyVerifier::detokenize(TokenSpan tokens, bool special) const {
    const py::gil_scoped_acquire acquire;
    using namespace py::literals;
    const std::vector<Token> copy(tokens.begin(), tokens.end());
    return verifier_.attr("detokenize")(copy, "special"_a = special).cast<std::string>();
}

void PyVerifier::begin(const VerifiedText& text) {
    const py::gil_scoped_acquire acquire;
    verifier_.attr("begin")(text.sequence, copy_of(text.prompt), copy_of(text.generated),
                            text.max_tokens, text.sampling, text.cache_prompt);
}

std::vector<SequenceId> PyVerifier::prefilled(std::span<const SequenceId> sequences, bool waits) {
    const py::gil_scoped_acquire acquire;
    const std::vector<SequenceId> ids(sequences.begin(), sequences.end());
    return verifier_.attr("prefilled")(ids, waits).cast<std::vector<SequenceId>>();
}

std::vector<VerifyAnswer> PyVerifier::verify(std::span<const VerifyRequest> requests) {
    const py::gil_scoped_acquire acquire;
    py::list asked;
    for (const VerifyRequest& one : requests)
        asked.append(py::make_tuple(one.sequence, copy_of(one.tokens.subspan(one.n_prompt)),
                                    one.draft->tokens, one.draft->branches));
    std::vector<VerifyAnswer> answers;
    for (const py::handle answer : verifier_.attr("verify")(asked))
        answers.push_back(read_answer(answer));
    return answers;
}

void PyVerifier::end(SequenceId sequence) {
    const py::gil_scoped_acquire acquire;
    verifier_.attr("end")(sequence);
}

}  // namespace specllama
