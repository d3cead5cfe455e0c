#pragma once

#include <string>
#include <vector>

namespace specllama {

// How a program ended that was run beside this process.
struct ChildResult {
    // not_started: it may not be there, or not be a program.
    enum class End { not_started, exited, killed, timed_out };

    End end = End::not_started;
    int code = 0;        // exit code, or the signal that killed it
    std::string output;  // of its stdout, at most 64 kB
};

// Runs a program to its end, with nothing to read and its stderr dropped.
//
// command: the program's path and its arguments. environment: "NAME=value" entries that it has
// beside, or in place of, this process's. After `seconds` it is killed.
ChildResult run_child(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment, double seconds);

}  // namespace specllama
