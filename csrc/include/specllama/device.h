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
    bool takes_layers = false;  // whether it can hold layers, as GPUs can; false for CPUs
};

// The devices of RPC servers (as in ModelOptions::rpc) and of this machine. Throws what a session
// with these servers would throw.
std::vector<Device> list_devices(const std::string& rpc = "");

// llama.cpp's weight kernels for this processor, e.g. "AMX, repacked, plain". A kernel that is not
// used is followed by the reason in brackets. May test AMX in a child process
// (docs/start/install.md).
std::string cpu_kernels();

// Version of this library.
const char* version();

// Version of llama.cpp.
const char* llama_cpp_version();

// Shows llama.cpp's informational messages on stderr, not only warnings and errors. Affects the
// whole process, because llama.cpp has one log.
void set_verbose(bool verbose);

}  // namespace specllama
