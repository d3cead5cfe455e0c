#include "system/tcp.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

namespace specllama {

namespace {

using Clock = std::chrono::steady_clock;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;
#endif

class Socket {
 public:
    explicit Socket(const addrinfo& address)
        : fd_(socket(address.ai_family, address.ai_socktype, address.ai_protocol)) {
        if (fd_ < 0) return;
        fcntl(fd_, F_SETFD, FD_CLOEXEC);
        fcntl(fd_, F_SETFL, O_NONBLOCK);
#ifdef SO_NOSIGPIPE
        const int on = 1;
        setsockopt(fd_, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
    }
    ~Socket() {
        if (fd_ >= 0) close(fd_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int fd() const { return fd_; }

    // Makes the destructor reset the connection. Otherwise a slow server would write its answer to
    // a closed connection, which may end the server (SIGPIPE).
    void give_up() const {
        const linger at_once{1, 0};
        setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }

    // Waits until the socket is ready to read or write. Returns false if it is not before `end`.
    bool wait(short event, Clock::time_point end) const {
        for (;;) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            pollfd ready{fd_, event, 0};
            const int n = poll(&ready, 1, static_cast<int>(std::max<long long>(left, 0)));
            if (n > 0) return true;
            if (n == 0 || errno != EINTR) return false;
        }
    }

 private:
    int fd_;
};

Addresses look_up(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
        found = nullptr;
    return {found, freeaddrinfo};
}

// Returns 0 or an errno; ETIMEDOUT if there is no result before `end`.
int connect_to(const addrinfo& address, const Socket& socket, Clock::time_point end) {
    if (socket.fd() < 0) return errno;
    if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    if (!socket.wait(POLLOUT, end)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

TcpAnswer ask_tcp(const std::string& host, int port, const std::string& question,
                  std::size_t n_answer, double seconds) {
    using End = TcpAnswer::End;
    const auto deadline = [&] {
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    TcpAnswer answer;
    const auto ended = [&](End how) {
        answer.end = how;
        return answer;
    };
    const Addresses addresses = look_up(host, port);
    if (!addresses) return ended(End::unknown_host);
    const Socket socket(*addresses);
    if (const int error = connect_to(*addresses, socket, deadline()); error != 0) {
        answer.reason = std::strerror(error);
        return ended(End::unreachable);
    }
    auto end = deadline();
    for (std::size_t n_sent = 0; n_sent < question.size();) {
        if (!socket.wait(POLLOUT, end)) {
            socket.give_up();
            return ended(End::timed_out);
        }
        const ssize_t n =
            send(socket.fd(), question.data() + n_sent, question.size() - n_sent, kSendFlags);
        if (n > 0)
            n_sent += static_cast<std::size_t>(n);
        else if (!would_block())
            return ended(End::closed);
    }
    end = deadline();
    while (answer.bytes.size() < n_answer) {
        if (!socket.wait(POLLIN, end)) {
            socket.give_up();
            return ended(End::timed_out);
        }
        char buffer[256];
        const ssize_t n =
            recv(socket.fd(), buffer, std::min(sizeof(buffer), n_answer - answer.bytes.size()), 0);
        if (n > 0)
            answer.bytes.append(buffer, static_cast<std::size_t>(n));
        else if (n == 0 || !would_block())
            return ended(End::closed);
    }
    return ended(End::answered);
}

}  // namespace specllama
