#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace specllama {

// The devices of llama.cpp's RPC servers "host:port,host:port", in this order; none for "". They do
// not join the devices that llama.cpp knows by itself: a session that names no servers uses none.
//
// First each server is asked whether it is there and its version fits, since llama.cpp would end
// the process otherwise. Servers on which a model of this process lies (RpcUse) are not asked.
// Throws InvalidArgument if the text is not understood or the library has no RPC, ModelError if a
// server is not there, does not fit, or has no devices.
std::vector<ggml_backend_dev_t> rpc_devices(const std::string& servers);

// While it lives, records that a model lies on these servers. llama.cpp then has a connection to
// each, and since a server takes one connection at a time, it answers nobody else.
//
// If a server is lost, llama.cpp ends the process; the user then gets one clear sentence, and the
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

// While it lives, writing to a connection that the other side has closed does not end the process
// if this thread, or a thread that it starts, does so. llama.cpp's threads report it themselves.
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
