#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace specllama {

// The devices of llama.cpp's RPC servers "host:port,host:port", in this order; none for "". They
// are not added to llama.cpp's list of devices, so other sessions do not use them.
//
// First checks that each server exists and its version fits, since llama.cpp would otherwise end
// the process. Servers that already hold a model of this process (RpcUse) are not checked. Throws
// InvalidArgument if the text is malformed or the library has no RPC, ModelError if a server does
// not answer, does not fit, or has no devices.
std::vector<ggml_backend_dev_t> rpc_devices(const std::string& servers);

// Records, during its lifetime, that a model is on these servers. llama.cpp then has a connection
// to each. A server accepts one connection at a time, so it does not answer others.
//
// If a server is lost, llama.cpp ends the process. The user then gets one clear sentence, and the
// exit code is 1.
class RpcUse {
 public:
    explicit RpcUse(const std::string& servers);
    ~RpcUse();
    RpcUse(const RpcUse&) = delete;
    RpcUse& operator=(const RpcUse&) = delete;

 private:
    std::vector<std::string> servers_;
};

// During its lifetime, writing to a closed connection does not end the process, for this thread and
// threads that it starts. llama.cpp's threads report such errors themselves.
class NoSigpipe {
 public:
    NoSigpipe();
    ~NoSigpipe();
    NoSigpipe(const NoSigpipe&) = delete;
    NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
    bool blocked_ = false;  // whether this object blocked the signal
};

}  // namespace specllama
