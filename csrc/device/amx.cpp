#include "device/amx.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>

#include "files/cache_folder.h"
#include "ggml-cpu.h"
#include "llama/backend.h"
#include "specllama/device.h"
#include "specllama/error.h"
#include "system/child_process.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "SPECLLAMA_AMX";
constexpr const char* kKind = "amx";

// The bundled draft model continues kPrompt with kAnswer, whatever the rounding. The prompt has
// several tokens, so its decode uses tiles.
constexpr const char* kPrompt = "import sys\nimport sys\nimport sys\nimport";
constexpr const char* kAnswer = " sys\nimport sys\nimport";
constexpr const char* kAnswerTokens = "6";

// The file of the library or program that contains a function; "": unknown.
fs::path file_of(const void* function) {
    Dl_info info{};
    if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return {};
    std::error_code error;
    const fs::path path = fs::canonical(info.dli_fname, error);
    return error ? fs::path() : path;
}

// The file of llama.cpp's library that this process has loaded.
fs::path library() { return file_of(reinterpret_cast<const void*>(ggml_backend_cpu_reg)); }

// Identifies that library by its path, size and modification time; "": unknown.
std::string library_key() {
    const fs::path path = library();
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (error) return "";
    const auto time = fs::last_write_time(path, error).time_since_epoch();
    if (error) return "";
    // In the unit of the file clock the count may be a 128-bit number.
    const std::chrono::nanoseconds nanoseconds = time;
    return "AMX with " + path.string() + ", " + std::to_string(size) + " bytes, " +
           std::to_string(nanoseconds.count());
}

// Tests with spec-cli: the program that contains this code, or the one in the Python package's bin
// folder.
AmxTrial default_trial() {
    AmxTrial trial;
    trial.key = library_key();
    trial.folder = cache_folder();
    const fs::path here = file_of(reinterpret_cast<const void*>(&amx_works));
    const fs::path own = here.parent_path() / "spec-cli";
    const fs::path program = fs::exists(own) ? own : here.parent_path() / "bin" / "spec-cli";
    const fs::path model = program.parent_path().parent_path() / "models" / "draft-q8_0.gguf";
    for (const std::string& word :
         {program.string(), std::string("-m"), model.string(), std::string("-p"),
          std::string(kPrompt), std::string("-n"), std::string(kAnswerTokens)})
        trial.command.push_back(word);
    for (const char* word : {"-t", "1", "-c", "64", "--draft", "none", "-ngl", "0"})
        trial.command.emplace_back(word);
    trial.expected = kAnswer;
    trial.libraries = library().parent_path();
    return trial;
}

// "NAME=value" of the environment that makes this folder the first one for libraries.
std::string library_path(const fs::path& folder) {
    const char* others = std::getenv("LD_LIBRARY_PATH");
    return "LD_LIBRARY_PATH=" + folder.string() +
           (others == nullptr || *others == '\0' ? "" : std::string(":") + others);
}

// Whether the program was killed by its own fault, which would be repeated.
bool crashed(const ChildResult& result) {
    if (result.end != ChildResult::End::killed) return false;
    const auto own = {SIGSEGV, SIGILL, SIGBUS, SIGABRT, SIGFPE};
    return std::ranges::find(own, result.code) != own.end();
}

std::string how_it_ended(const ChildResult& result) {
    switch (result.end) {
        case ChildResult::End::not_started:
            return "cannot be started";
        case ChildResult::End::timed_out:
            return "does not end in time";
        case ChildResult::End::killed:
            return std::string("crashes: ") + strsignal(result.code);
        case ChildResult::End::exited:
            break;
    }
    return result.code == 0 ? "gives a wrong answer" : "fails";
}

}  // namespace

bool AmxTrial::works(std::string& notice) const {
    notice.clear();
    const fs::path memory = key.empty() ? fs::path() : folder;
    // One line: "works", or how the program ended.
    std::string outcome;
    std::istringstream stream(recall(memory, kKind, key));
    std::getline(stream, outcome);
    if (outcome.empty()) {
        const auto run = [&](const char* value) {
            std::vector<std::string> environment{std::string(kVariable) + "=" + value};
            if (!libraries.empty()) environment.push_back(library_path(libraries));
            return run_child(command, environment, seconds);
        };
        const auto went_well = [&](const ChildResult& result) {
            return result.end == ChildResult::End::exited && result.code == 0 &&
                   result.output.starts_with(expected);
        };
        const ChildResult with = run("on");
        outcome = went_well(with) ? "works" : how_it_ended(with);
        if (crashed(with)) {
            const ChildResult without = run("off");
            if (crashed(without))
                throw ModelError(
                    "llama.cpp's library does not support this processor (a small decode " +
                    how_it_ended(without) + "); build it here: " + rebuild() + ".");
        }
        // A result that may be due to chance, such as a busy machine, is not stored.
        const bool answered = with.end == ChildResult::End::exited && with.code == 0;
        if (answered || crashed(with)) remember(memory, kKind, key, outcome + '\n');
    }
    if (outcome == "works") return true;
    notice = "AMX is not used, because a small decode with it " + outcome + "; for full speed " +
             rebuild("CXXFLAGS", "-fno-dse -fno-tree-dse") + ".";
    return false;
}

bool has_amx() { return std::ranges::any_of(extra_buffer_types(), is_amx); }

bool amx_works() {
    static const bool works = [] {
        if (!has_amx()) return false;
        const char* value = std::getenv(kVariable);
        const std::string given = value == nullptr ? "" : value;
        if (given == "on" || given == "off") return given == "on";
        std::string notice;
        const bool found = default_trial().works(notice);
        if (!notice.empty()) warn(notice);
        return found;
    }();
    return works;
}

}  // namespace specllama
