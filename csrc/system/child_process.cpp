#include "system/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#ifdef __APPLE__
#include <crt_externs.h>  // a library loaded into a program cannot see `environ`
#else
extern char** environ;  // NOLINT(readability-redundant-declaration): not declared everywhere
#endif

namespace specllama {

namespace {

constexpr std::size_t kMostOutput = 64 << 10;

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

char** own_environment() {
#ifdef __APPLE__
    return *_NSGetEnviron();
#else
    return environ;
#endif
}

std::vector<std::string> merged(std::vector<std::string> environment) {
    const std::size_t n_own = environment.size();
    for (char** entry = own_environment(); *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('=') + 1);
        bool replaced = false;
        for (std::size_t i = 0; i < n_own; ++i) replaced |= environment[i].starts_with(name);
        if (!replaced) environment.emplace_back(text);
    }
    return environment;
}

// Children that another thread starts at the same time do not inherit the ends.
bool open_pipe(int (&ends)[2]) {
#ifdef __linux__
    return pipe2(ends, O_CLOEXEC) == 0;
#else
    if (pipe(ends) != 0) return false;
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    return true;
#endif
}

// Starts the program with `out`, the write end of a pipe, as its stdout. Returns its process id, or
// -1 if it cannot be started.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // The child gets a separate process group, so that Ctrl-C reaches only this process.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t child = -1;
    const int error = posix_spawn(&child, command[0].c_str(), &actions, &attributes,
                                  pointers(command).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? child : -1;
}

// Reads until the other end is closed. Returns whether that happened before `end`.
bool read_all(int in, Clock::time_point end, std::string& output) {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return false;
        pollfd readable{in, POLLIN, 0};
        const int ready = poll(&readable, 1, static_cast<int>(left));
        if (ready == 0) return false;
        if (ready < 0) {
            if (errno == EINTR) continue;
            return false;
        }
        char buffer[4096];
        const ssize_t n = read(in, buffer, sizeof(buffer));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        if (output.size() < kMostOutput) output.append(buffer, static_cast<std::size_t>(n));
    }
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment, double seconds) {
    ChildResult result;
    int ends[2];
    if (!open_pipe(ends)) return result;
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(seconds));
    const pid_t child = spawn(command, merged(environment), ends[1]);
    close(ends[1]);
    bool in_time = true;
    if (child >= 0) {
        in_time = read_all(ends[0], deadline, result.output);
        int status = 0;
        // A program may close its stdout and keep running.
        while (in_time && waitpid(child, &status, WNOHANG) == 0) {
            usleep(1000);
            in_time = Clock::now() < deadline;
        }
        if (!in_time) {
            kill(child, SIGKILL);
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            result.end = ChildResult::End::timed_out;
        } else if (WIFSIGNALED(status)) {
            result.end = ChildResult::End::killed;
            result.code = WTERMSIG(status);
        } else {
            result.end = ChildResult::End::exited;
            result.code = WEXITSTATUS(status);
        }
    }
    close(ends[0]);
    return result;
}

}  // namespace specllama
