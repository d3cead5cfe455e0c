#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bind.h"
#include "specllama/verifier.h"

namespace specllama {

// A target elsewhere, which Python asks: calls the methods of an object, and holds the GIL only
// there.
//
// The errors of texts come as exceptions in place of answers. What the methods raise goes through
// to the caller.
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
