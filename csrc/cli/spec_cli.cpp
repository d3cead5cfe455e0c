#include "cli/spec_cli.h"

#include <signal.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <utility>

#include "cli/chat.h"
#include "cli/options.h"
#include "cli/run.h"
#include "specllama/device.h"
#include "specllama/error.h"

namespace specllama::cli {

namespace {

volatile std::sig_atomic_t signalled = 0;

// The first Ctrl-C ends the generation. It also restores the default handler, so the second one
// ends the process. An interrupted read is not restarted: a prompt on stdin may never come. An
// ignored Ctrl-C, as in the background of a script, stays ignored.
void on_interrupt(int) { signalled = 1; }

void listen_for_interrupt() {
    struct sigaction action {};
    sigaction(SIGINT, nullptr, &action);
    if (action.sa_handler == SIG_IGN) return;
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return signalled != 0; }

void print_devices(const std::string& rpc) {
    for (const Device& device : list_devices(rpc))
        std::cout << device.name << ": " << device.description << " ("
                  << (device.memory_total >> 20) << " MiB, " << (device.memory_free >> 20)
                  << " MiB free)\n";
    std::cout << "CPU kernels: " << cpu_kernels() << '\n';
}

int fail(const std::string& message, int code) {
    std::cout.flush();
    std::fprintf(stderr, "spec-cli: %s\n", message.c_str());
    return code;
}

}  // namespace

int spec_cli(int argc, const char* const* argv, const std::filesystem::path& executable,
             ChatRenderer chat) {
    try {
        Options options = parse(argc, argv);
        options.executable = executable;
        options.chat = chat ? std::move(chat) : llama_cpp_chat;
        if (options.help) {
            std::cout << help_text();
        } else if (options.version) {
            std::cout << "spec-cli " << version() << " (llama.cpp " << llama_cpp_version() << ")\n";
        } else if (options.list_devices) {
            print_devices(options.session.model.rpc);
        } else {
            listen_for_interrupt();
            return run(options, interrupted);
        }
        if (!std::cout.flush()) throw Error("The text cannot be written to standard output.");
        return kOk;
    } catch (const UsageError& error) {
        return fail(error.what(), kBadUsage);
    } catch (const InvalidArgument& error) {
        return fail(with_flags(error.what()), kBadUsage);
    } catch (const ModelError& error) {
        return fail(with_flags(error.what()), kBadUsage);
    } catch (const std::bad_alloc&) {
        return fail(with_flags("There is not enough memory; lower n_ctx or n_batch."), kFailure);
    } catch (const std::exception& error) {
        return fail(with_flags(error.what()), kFailure);
    }
}

}  // namespace specllama::cli
