#pragma once

#include <cstddef>
#include <string>

namespace specllama {

// What came of a question to a TCP server.
struct TcpAnswer {
    // closed: the server ended the connection before the answer was complete.
    enum class End { answered, unknown_host, unreachable, closed, timed_out };

    End end = End::unreachable;
    std::string reason;  // why it is unreachable
    std::string bytes;   // that came
};

// Connects over IPv4, sends `question`, and reads `n_answer` bytes; each of the three may take
// `seconds`. (How long a host's name is looked up is up to the system.)
TcpAnswer ask_tcp(const std::string& host, int port, const std::string& question,
                  std::size_t n_answer, double seconds);

}  // namespace specllama
