#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace specllama {

// The devices of llama.cpp's RPC servers "host:port,host:port", in this order; none of "". They are
// not among those that llama.cpp knows of by itself: a session that names no servers uses none.
//
// Each server is asked first whether it is there and of this version, since llama.cpp would end the
// process where it is not; but for those that a model of this process lies on (RpcUse).
// Throws InvalidArgument where the text is not understood or the library has no RPC, ModelError
// where a server is not there, or of another kind.
std::vector<ggml_backend_dev_t> rpc_devices(const std::string& servers);

// Says, while it lives, that a model lies on these servers: llama.cpp has a connection to each, and
// as servers take one at a time, they answer nobody else.
//
// Where one of them is lost llama.cpp ends the process; it then does so with one sentence of ours
// and exit code 1.
class RpcUse {
 public:
    explicit RpcUse(const std::string& servers);
    ~RpcUse();
    RpcUse(const RpcUse&) = delete;
    RpcUse& operator=(const RpcUse&) = delete;

 private:
    std::vector<std::string> servers_;
};

// While it lives, this thread and those that it starts are not ended by writing to a connection
// that the other side has closed: llama.cpp's threads report it themselves.
class NoSigpipe {
 public:
    NoSigpipe();
    ~NoSigpipe();
    NoSigpipe(const NoSigpipe&) = delete;
    NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
    bool blocked_ = false;  // by us
};

}  // namespace specllama
