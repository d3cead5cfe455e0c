#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace specllama {

// llama.cpp's kernels for Intel's AMX may crash: compilers before GCC 13 remove the stores into the
// tile configuration as dead (llama.cpp issue 20824), and the first decode of more than one token
// then ends the process. So a small decode is tried in a child process first.

// Whether llama.cpp may multiply with AMX tiles here. False, at no cost, if the processor or
// llama.cpp's library has no AMX. Otherwise the answer is found once per process, in the cache
// folder or by a child process; if AMX does not work, a notice says why and how to get full speed.
// SPECLLAMA_AMX=on or off in the environment gives the answer without a child.
//
// Throws ModelError if a child crashes without AMX, too: the library is not for this processor.
bool amx_works();

// Whether llama.cpp's library has AMX kernels and the processor has AMX.
bool has_amx();

// How amx_works() finds its answer.
struct AmxTrial {
    // The program that tries AMX, with its arguments, and what its output begins with if all is
    // well. SPECLLAMA_AMX tells the program whether to use AMX.
    std::vector<std::string> command;
    std::string expected;
    // Folder in which the program looks for its libraries first; "": none.
    std::filesystem::path libraries;
    double seconds = 20;  // after which the program is killed and counts as failed
    // What is tried, on one line, and the folder that remembers the result. If either is empty,
    // nothing is remembered.
    std::string key;
    std::filesystem::path folder;

    // Whether AMX works. notice: as above; "" if it works. Throws as amx_works() does.
    bool works(std::string& notice) const;
};

}  // namespace specllama
