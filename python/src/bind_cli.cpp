#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bind.h"
#include "cli/chat.h"
#include "cli/flags.h"
#include "cli/options.h"
#include "cli/spec_cli.h"
#include "specllama/error.h"
#include "specllama/media.h"
#include "specllama/session.h"

namespace specllama {

namespace {

// Formats messages in Python. Its errors become errors of the command.
cli::ChatRenderer chat_renderer(const py::function& chat) {
    return [&chat](const Session& session, const std::optional<std::string>& system,
                   const std::string& message,
                   std::span<const std::string> media) -> std::optional<MediaPrompt> {
        const py::gil_scoped_acquire acquire;
        try {
            const py::object backend = py::cast(&session, py::return_value_policy::reference);
            const std::vector<std::string> files(media.begin(), media.end());
            const py::object prompt = chat(backend, system, message, files);
            if (py::isinstance<MediaPrompt>(prompt)) return prompt.cast<MediaPrompt>();
            return cli::text_prompt(prompt.cast<std::vector<Token>>());
        } catch (const py::error_already_set& error) {
            throw cli::UsageError(py::str(error.value()).cast<std::string>());
        }
    };
}

}  // namespace

void bind_cli(py::module_& m) {
    m.def(
        "spec_cli",
        [](const std::vector<std::string>& arguments, const py::function& chat) {
            std::vector<const char*> argv;
            argv.reserve(arguments.size());
            for (const std::string& one : arguments) argv.push_back(one.c_str());
            const py::gil_scoped_release release;
            return cli::spec_cli(static_cast<int>(argv.size()), argv.data(), arguments.at(0),
                                 chat_renderer(chat));
        },
        py::arg("arguments"), py::arg("chat"));
    m.def(
        "check_spec_cli",
        [](const std::vector<std::string>& arguments) {
            std::vector<const char*> argv = {"spec-cli"};
            for (const std::string& one : arguments) argv.push_back(one.c_str());
            try {
                cli::parse(static_cast<int>(argv.size()), argv.data());
            } catch (const cli::UsageError& error) {
                throw InvalidArgument(error.what());
            }
        },
        py::arg("arguments"));
    m.def("spec_cli_flags", [] {
        py::dict takes_value;
        for (const cli::Flag& flag : cli::flags())
            for (const std::string& name : flag.names)
                takes_value[py::str(name)] = !flag.value.empty();
        return takes_value;
    });
}

}  // namespace specllama
