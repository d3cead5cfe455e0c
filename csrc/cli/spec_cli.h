#pragma once

#include <filesystem>

#include "cli/options.h"

namespace specllama::cli {

// Runs spec-cli with its command line, and returns its exit code. executable: spec-cli's file,
// beside whose folder the bundled models are. chat: writes messages; by default as render_chat
// does. From the call on, the first Ctrl-C ends the generation, unless the process ignores it, and
// the second one the process.
int spec_cli(int argc, const char* const* argv, const std::filesystem::path& executable,
             ChatRenderer chat = {});

}  // namespace specllama::cli
