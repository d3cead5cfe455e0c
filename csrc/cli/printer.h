#pragma once

#include <string>

#include "cli/options.h"
#include "specllama/stats.h"
#include "specllama/types.h"

namespace specllama::cli {

// Shows a generation: its text on stdout, everything else on stderr; or all as JSON on stdout.
class Printer {
 public:
    explicit Printer(const Options& options);

    // Shows, where colours are shown, what is continued.
    void prompt(const std::string& text);
    void chunk(const Chunk& chunk);
    // Pushes out what was printed.
    void flush();
    void end(FinishReason reason, bool interrupted, const Stats& stats);

 private:
    bool json_;
    bool stats_;
    bool color_;
    bool at_line_start_ = true;
};

}  // namespace specllama::cli
