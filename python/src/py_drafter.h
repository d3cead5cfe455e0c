#pragma once

#include "bind.h"
#include "specllama/drafter.h"

namespace specllama {

// A drafter written in Python. Calls the methods of a specllama.Drafter object.
//
// An Exception of a method becomes a DrafterError, which the engine records. Other exceptions, such
// as KeyboardInterrupt, are passed to the caller.
class PyDrafter final : public Drafter {
 public:
    explicit PyDrafter(py::object drafter);
    ~PyDrafter() override;

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void observe(SequenceId sequence, const Draft& draft, int n_accepted, Token next) override;
    void end(SequenceId sequence) override;

 private:
    py::object drafter_;
};

}  // namespace specllama
