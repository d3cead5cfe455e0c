#pragma once

#include <cstddef>
#include <string>

namespace specllama {

// The outcome of asking a TCP server.
struct TcpAnswer {
    // closed: the server ended the connection before the answer was complete.
    enum class End { answered, unknown_host, unreachable, closed, timed_out };

    End end = End::unreachable;
    std::string reason;  // why the server is unreachable
    std::string bytes;   // received, even if the answer is incomplete
};

// Connects over IPv4, sends `question` and reads `n_answer` bytes; each of the three steps may take
// up to `seconds`. (The system decides how long it looks up a host's name.)
TcpAnswer ask_tcp(const std::string& host, int port, const std::string& question,
                  std::size_t n_answer, double seconds);

}  // namespace specllama
