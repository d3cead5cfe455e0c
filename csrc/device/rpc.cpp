#include "device/rpc.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>

#include "ggml-rpc.h"
#include "ggml.h"
#include "llama/backend.h"
#include "specllama/error.h"
#include "system/tcp.h"

namespace specllama {

namespace {

constexpr double kSeconds = 5;  // for each step of checking a server

struct Endpoint {
    std::string text;  // host:port
    std::string host;
    int port = 0;
};

Endpoint parse_one(const std::string& text) {
    const auto fail = [&](const std::string& what) {
        throw InvalidArgument("rpc must be host:port, or several with commas between them; \"" +
                              text + "\" " + what + ".");
    };
    const auto colon = text.find(':');
    if (colon == std::string::npos || colon + 1 == text.size()) fail("has no port");
    if (colon == 0) fail("has no host");
    if (text.find(':', colon + 1) != std::string::npos)
        fail("has more than one colon (llama.cpp reaches servers over IPv4 only)");
    Endpoint endpoint{text, text.substr(0, colon)};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (error != std::errc() || rest != end || endpoint.port < 1 || endpoint.port > 65535)
        fail("has a port that is not a number from 1 to 65535");
    return endpoint;
}

std::vector<Endpoint> parse(const std::string& servers) {
    std::vector<Endpoint> endpoints;
    // With the added comma, getline also returns an empty last entry.
    std::istringstream stream(servers + ',');
    for (std::string text; std::getline(stream, text, ',');) {
        const bool again = std::ranges::any_of(
            endpoints, [&](const Endpoint& endpoint) { return endpoint.text == text; });
        if (again) throw InvalidArgument("rpc names the server " + text + " twice.");
        endpoints.push_back(parse_one(text));
    }
    return endpoints;
}

// The mutex guards uses(), the number of models on each server. It is never held during calls of
// llama.cpp, which may wait for a thread of its own that calls on_abort, which needs the mutex.
std::mutex uses_mutex;
std::map<std::string, int>& uses() {
    static std::map<std::string, int> counts;
    return counts;
}

bool in_use(const std::string& server) {
    const std::lock_guard lock(uses_mutex);
    return uses().contains(server);
}

ggml_abort_callback_t abort_before = nullptr;

// llama.cpp calls this before it ends the process, in the thread of the failure. That thread cannot
// continue, and others wait for it forever, so the process must end, with a clear message.
void on_abort(const char* message) {
    if (std::strstr(message, "ggml-rpc") == nullptr) {
        if (abort_before != nullptr)
            abort_before(message);
        else
            std::fprintf(stderr, "%s\n", message);
        return;
    }
    std::string names;
    if (const std::unique_lock lock(uses_mutex, std::try_to_lock); lock.owns_lock())
        for (const auto& [server, n] : uses()) names += (names.empty() ? "" : ", ") + server;
    warn("An RPC server was lost (of " + (names.empty() ? std::string("those of rpc") : names) +
         "): llama.cpp cannot continue without it and ends the process.");
    std::_Exit(EXIT_FAILURE);
}

// The protocol of ggml-rpc.cpp: a request has one byte for the command and eight for the length of
// its content. The answer has the length and then the version, one byte for each part.
constexpr char kHello = 14;
constexpr std::size_t kHelloSize = 24;
constexpr std::size_t kVersionAt = sizeof(std::uint64_t);
constexpr std::size_t kVersionSize = 4;

std::string hello() {
    const std::uint64_t size = kHelloSize;
    std::string request(1 + sizeof(size) + kHelloSize, '\0');
    request[0] = kHello;
    std::memcpy(request.data() + 1, &size, sizeof(size));
    return request;
}

// Throws ModelError if llama.cpp would end the process because of this server.
void check_answers(const Endpoint& endpoint) {
    const TcpAnswer answer = ask_tcp(endpoint.host, endpoint.port, hello(),
                                     kVersionAt + kVersionSize + kHelloSize, kSeconds);
    const auto fail = [&](const std::string& what) {
        throw ModelError("The RPC server " + endpoint.text + " " + what + ".");
    };
    using End = TcpAnswer::End;
    if (answer.end == End::unknown_host)
        fail("cannot be found: " + endpoint.host + " is not a host with an IPv4 address");
    if (answer.end == End::unreachable) fail("cannot be reached: " + answer.reason);
    std::uint64_t size = 0;
    const bool has_version = answer.bytes.size() >= kVersionAt + 3;
    if (has_version) std::memcpy(&size, answer.bytes.data(), sizeof(size));
    if (!has_version || size < 3 || size > 256) {
        if (answer.end == End::timed_out && answer.bytes.empty())
            fail("does not answer: it may be serving another process; it serves one at a time");
        fail(
            "does not answer like an RPC server of llama.cpp: another program may be listening "
            "there, or its version differs");
    }
    const auto part = [&](std::size_t i) {
        return static_cast<int>(static_cast<unsigned char>(answer.bytes[kVersionAt + i]));
    };
    if (answer.end != End::answered || size != kVersionSize + kHelloSize ||
        part(0) != RPC_PROTO_MAJOR_VERSION || part(1) > RPC_PROTO_MINOR_VERSION)
        fail("uses version " + std::to_string(part(0)) + "." + std::to_string(part(1)) +
             " of the protocol, but this llama.cpp " + std::to_string(RPC_PROTO_MAJOR_VERSION) +
             "." + std::to_string(RPC_PROTO_MINOR_VERSION) +
             "; build both from the same llama.cpp");
}

decltype(ggml_backend_rpc_add_server)* add_server() {
    ensure_backend();
    ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
    if (rpc == nullptr)
        throw InvalidArgument("rpc: this llama.cpp was built without RPC; for it " +
                              rebuild("CMAKE_ARGS", "-DGGML_RPC=on") + ".");
    return reinterpret_cast<decltype(ggml_backend_rpc_add_server)*>(
        ggml_backend_reg_get_proc_address(rpc, "ggml_backend_rpc_add_server"));
}

}  // namespace

std::vector<ggml_backend_dev_t> rpc_devices(const std::string& servers) {
    if (servers.empty()) return {};
    const std::vector<Endpoint> endpoints = parse(servers);
    const auto add = add_server();
    static std::once_flag once;
    std::call_once(once, [] { abort_before = ggml_set_abort_callback(on_abort); });
    for (const Endpoint& endpoint : endpoints)
        if (!in_use(endpoint.text)) check_answers(endpoint);
    const NoSigpipe no_sigpipe;
    std::vector<ggml_backend_dev_t> devices;
    for (const Endpoint& endpoint : endpoints) {
        ggml_backend_reg_t server = add(endpoint.text.c_str());
        if (server == nullptr)
            throw ModelError("The RPC server " + endpoint.text + " has no devices.");
        for (std::size_t i = 0; i < ggml_backend_reg_dev_count(server); ++i)
            devices.push_back(ggml_backend_reg_dev_get(server, i));
    }
    return devices;
}

RpcUse::RpcUse(const std::string& servers) {
    if (servers.empty()) return;
    for (const Endpoint& endpoint : parse(servers)) servers_.push_back(endpoint.text);
    const std::lock_guard lock(uses_mutex);
    for (const std::string& server : servers_) ++uses()[server];
}

RpcUse::~RpcUse() {
    const std::lock_guard lock(uses_mutex);
    for (const std::string& server : servers_)
        if (--uses()[server] == 0) uses().erase(server);
}

NoSigpipe::NoSigpipe() {
    sigset_t pipe;
    sigset_t before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &pipe, &before) == 0)
        blocked_ = sigismember(&before, SIGPIPE) == 0;
}

NoSigpipe::~NoSigpipe() {
    if (!blocked_) return;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

}  // namespace specllama
