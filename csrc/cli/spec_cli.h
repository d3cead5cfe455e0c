#pragma once

#include <filesystem>

#include "cli/options.h"

namespace specllama::cli {

// Runs spec-cli with its command line, and returns its exit code. executable: file of spec-cli, to
// find the bundled models. chat: formats messages (default: render_chat). From the call on, the
// first Ctrl-C ends the generation and the second one the process, unless the process ignores
// Ctrl-C.
int spec_cli(int argc, const char* const* argv, const std::filesystem::path& executable,
             ChatRenderer chat = {});

}  // namespace specllama::cli
