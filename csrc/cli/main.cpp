// spec-cli: generation with speculation, by the C++ session alone, without Python.

#include <signal.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "cli/options.h"
#include "cli/run.h"
#include "specllama/device.h"
#include "specllama/error.h"

namespace {

using namespace specllama;

volatile std::sig_atomic_t signalled = 0;

// The first Ctrl-C ends the generation. It also restores the default handler, so the second one
// ends the process. An interrupted read is not restarted: a prompt on stdin may never come.
void on_interrupt(int) { signalled = 1; }

void listen_for_interrupt() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return signalled != 0; }

void print_devices(const std::string& rpc) {
    for (const Device& device : list_devices(rpc))
        std::printf("%s: %s (%zu MiB, %zu MiB free)\n", device.name.c_str(),
                    device.description.c_str(), device.memory_total >> 20,
                    device.memory_free >> 20);
    std::printf("CPU kernels: %s\n", cpu_kernels().c_str());
}

int fail(const std::string& message, int code) {
    std::cout.flush();
    std::fprintf(stderr, "spec-cli: %s\n", message.c_str());
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const cli::Options options = cli::parse(argc, argv);
        if (options.help) {
            std::cout << cli::help_text();
        } else if (options.version) {
            std::cout << "spec-cli " << version() << " (llama.cpp " << llama_cpp_version() << ")\n";
        } else if (options.list_devices) {
            print_devices(options.session.model.rpc);
        } else {
            listen_for_interrupt();
            return cli::run(options, interrupted);
        }
        return cli::kOk;
    } catch (const cli::UsageError& error) {
        return fail(error.what(), cli::kBadUsage);
    } catch (const InvalidArgument& error) {
        return fail(cli::with_flags(error.what()), cli::kBadUsage);
    } catch (const ModelError& error) {
        return fail(cli::with_flags(error.what()), cli::kBadUsage);
    } catch (const std::exception& error) {
        return fail(cli::with_flags(error.what()), cli::kFailure);
    }
}
