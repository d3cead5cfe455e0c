#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bind.h"
#include "specllama/verifier.h"

namespace specllama {

// A remote target, implemented in Python. Calls the methods of an object, and holds the GIL only
// during these calls.
//
// Errors of single texts are returned as exceptions instead of answers. Exceptions that the methods
// raise are passed to the caller.
class PyVerifier final : public Verifier {
 public:
    PyVerifier(py::object verifier, VerifierInfo info);
    ~PyVerifier() override;

    const VerifierInfo& info() const override { return info_; }
    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special,
                                TextRanges plain) const override;
    std::string detokenize(TokenSpan tokens, bool special) const override;
    void begin(const VerifiedText& text) override;
    std::vector<SequenceId> prefilled(std::span<const SequenceId> sequences, bool waits) override;
    std::vector<VerifyAnswer> verify(std::span<const VerifyRequest> requests) override;
    void end(SequenceId sequence) override;

 private:
    py::object verifier_;
    const VerifierInfo info_;
};

}  // namespace specllama
