#pragma once

#include <string>
#include <vector>

namespace specllama {

// How a child process ended.
struct ChildResult {
    // not_started: for example, the file is missing or not a program.
    enum class End { not_started, exited, killed, timed_out };

    End end = End::not_started;
    int code = 0;        // exit code, or the signal that killed it
    std::string output;  // the beginning of its stdout, at most about 64 kB
};

// Runs a program to its end, with an empty stdin. Its stderr is discarded.
//
// command: the program's path and its arguments. environment: "NAME=value" entries, added to this
// process's environment or replacing its entries. The program is killed after `seconds`.
ChildResult run_child(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment, double seconds);

}  // namespace specllama
