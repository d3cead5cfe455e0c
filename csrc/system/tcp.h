#pragma once

#include <cstddef>
#include <string>

namespace specllama {

// The result of a question to a TCP server.
struct TcpAnswer {
    // closed: the server closed the connection before the answer was complete.
    enum class End { answered, unknown_host, unreachable, closed, timed_out };

    End end = End::unreachable;
    std::string reason;  // reason if the server is unreachable
    std::string bytes;   // received, even if the answer is incomplete
};

// Connects over IPv4, sends `question` and reads `n_answer` bytes. Each of the three steps may take
// up to `seconds`. (The time to look up the host name is the system's.)
TcpAnswer ask_tcp(const std::string& host, int port, const std::string& question,
                  std::size_t n_answer, double seconds);

}  // namespace specllama
