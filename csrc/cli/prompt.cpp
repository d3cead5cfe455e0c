#include "cli/prompt.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "text/utf8.h"

namespace specllama::cli {

namespace {

namespace fs = std::filesystem;

// More than ten times any context. A longer input is probably endless.
constexpr std::size_t kMostBytes = 100'000'000;

bool is_piped() {
    struct stat status;
    return fstat(STDIN_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode));
}

// what: name of the text in error messages, e.g. "prompt".
std::string read_all(const std::string& what, std::istream& stream) {
    std::string text;
    char part[1 << 16];
    while (stream.read(part, sizeof(part)), stream.gcount() > 0) {
        text.append(part, static_cast<std::size_t>(stream.gcount()));
        if (text.size() > kMostBytes)
            throw UsageError("The " + what + " has more than 100 MB; give a shorter one.");
    }
    return text;
}

// what: name of the file in error messages, e.g. "prompt".
std::string read_file(const std::string& what, const std::string& path) {
    check_file(what, path);
    const std::string named = what + " file " + path;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UsageError("The " + named + " cannot be read.");
    return read_all(named, file);
}

// Removes the last line end, which editors and `echo` add, as llama.cpp does, and a byte order
// mark. Other line ends of Windows are kept, since they may be intended.
std::string cleaned(std::string text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    if (text.find("\r\n") != std::string::npos)
        std::cerr << "Note: the prompt has Windows line ends (CR LF), which are kept.\n";
    return text;
}

std::string read_any(const Options& options) {
    if (options.prompt) return *options.prompt;
    if (options.file ? *options.file == "-" : is_piped())
        return cleaned(read_all("prompt", std::cin));
    if (options.file) return cleaned(read_file("prompt", *options.file));
    if (options.session.model.path.empty()) return kBuiltinPrompt;
    throw UsageError("There is no prompt; give one with -p or -f, or pipe it in.");
}

}  // namespace

void check_file(const std::string& what, const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const std::string named = what + " file " + path;
    if (status.type() == fs::file_type::not_found) throw UsageError("There is no " + named + ".");
    if (error) throw UsageError("The " + named + " cannot be read: " + error.message() + ".");
    if (fs::is_directory(status)) throw UsageError("The " + named + " is a directory.");
}

std::string read_prompt(const Options& options) {
    std::string prompt = read_any(options);
    if (prompt.empty()) throw UsageError("The prompt is empty; give at least one character.");
    if (const auto at = find_invalid_utf8(prompt); at != std::string::npos)
        throw UsageError("The prompt is not valid UTF-8 (at byte " + std::to_string(at) + ").");
    return prompt;
}

std::string read_grammar(const std::string& path) {
    std::string grammar = read_file("grammar", path);
    if (grammar.empty()) throw UsageError("The grammar file " + path + " is empty.");
    return grammar;
}

std::string bundled_model(const Options& options, const std::string& name) {
    return (options.executable.parent_path().parent_path() / SPECLLAMA_MODELS / name).string();
}

}  // namespace specllama::cli
