#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace specllama {

// A processor that llama.cpp can compute on. Memory in bytes.
struct Device {
    std::string name;
    std::string description;
    std::size_t memory_free = 0;
    std::size_t memory_total = 0;
    bool takes_layers = false;  // whether weights can be put there: GPUs and the like, no CPU
};

// The devices of RPC servers (as in ModelOptions::rpc) and of this machine. Throws what a session
// with these servers would throw.
std::vector<Device> list_devices(const std::string& rpc = "");

// The weight kernels that llama.cpp has for this processor, e.g. "AMX, repacked, plain"; a kernel
// that is not used has the reason in brackets. May try AMX in a child process; see
// docs/start/install.md.
std::string cpu_kernels();

// Version of this library.
const char* version();

// Version of the llama.cpp it runs on.
const char* llama_cpp_version();

// Lets llama.cpp's informational messages through to stderr, not just warnings and errors.
// For the whole process: llama.cpp has one log.
void set_verbose(bool verbose);

}  // namespace specllama
