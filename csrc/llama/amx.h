#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace specllama {

// Intel's AMX, whose kernels in llama.cpp may crash: compilers before GCC 13 take the stores into
// the tiles' configuration for dead (llama.cpp issue 20824), and the first decode of more than one
// token ends the process. So a small decode is tried in a child process first.

// Whether llama.cpp may multiply with AMX's tiles here. False, at no cost, where the processor or
// llama.cpp's library has none. Else found out once per process, by the cache folder or by a child;
// where it is no, a notice says what that costs and what helps. SPECLLAMA_AMX=on or off in the
// environment says so without a child.
//
// Throws ModelError where a child dies without AMX, too: the library is not for this processor.
bool amx_works();

// Whether there is AMX in llama.cpp's library, and the processor has it.
bool has_amx();

// How it is found out.
struct AmxTrial {
    // The program that tries it, and its arguments; what it prints if all is well. It is told by
    // SPECLLAMA_AMX whether to use AMX.
    std::vector<std::string> command;
    std::string expected;
    // Folder of the libraries that it takes before those it would find by itself; "": none.
    std::filesystem::path libraries;
    double seconds = 20;  // after which it counts as dead
    // What was tried, on one line, and the folder that remembers; either may be empty: nothing is
    // remembered.
    std::string key;
    std::filesystem::path folder;

    // Whether AMX works. Throws as amx_works does. `notice`: as above, or "".
    bool works(std::string& notice) const;
};

}  // namespace specllama
