#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace specllama {

// llama.cpp's kernels for Intel's AMX may crash: compilers before GCC 13 remove the stores to the
// tile configuration as dead (llama.cpp issue 20824), and then the first decode of more than one
// token ends the process. So a child process first tries a small decode.

// Whether llama.cpp can multiply with AMX tiles here. False, at no cost, if the processor or
// llama.cpp's library has no AMX. Otherwise the answer is determined once per process, from the
// cache folder or by a child process. If AMX does not work, a notice gives the reason and the way
// to full speed. The environment variable SPECLLAMA_AMX=on or off sets the answer without a child
// process.
//
// Throws ModelError if a child process also crashes without AMX: then the library does not support
// this processor.
bool amx_works();

// Whether llama.cpp's library has AMX kernels and the processor has AMX.
bool has_amx();

// The test of amx_works().
struct AmxTrial {
    // The program that tries AMX, with its arguments, and the beginning of its output on success.
    // SPECLLAMA_AMX is set to use AMX or not.
    std::vector<std::string> command;
    std::string expected;
    // First folder where the program looks for its libraries; "": none.
    std::filesystem::path libraries;
    double seconds = 20;  // limit; then the program is killed and counts as failed
    // Identifies the test, on one line, and the folder for the stored result. If either is empty,
    // nothing is stored.
    std::string key;
    std::filesystem::path folder;

    // Whether AMX works. notice: as above; "" if it works. Throws like amx_works().
    bool works(std::string& notice) const;
};

}  // namespace specllama
