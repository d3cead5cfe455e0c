#pragma once

#include <string>

#include "cli/options.h"
#include "specllama/stats.h"
#include "specllama/types.h"

namespace specllama::cli {

// Prints a generation: its text on stdout and everything else on stderr, or everything as JSON on
// stdout.
class Printer {
 public:
    explicit Printer(const Options& options);

    // Prints the prompt if colours are on.
    void prompt(const std::string& text);
    void chunk(const Chunk& chunk);
    // Throws Error if stdout cannot be written to.
    void flush();
    void end(FinishReason reason, bool interrupted, const Stats& stats);
    // Whether a chunk with text was printed.
    bool has_text() const { return has_text_; }

 private:
    bool json_;
    bool stats_;
    bool color_;
    bool at_line_start_ = true;
    bool has_text_ = false;
};

}  // namespace specllama::cli
