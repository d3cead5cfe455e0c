#include "llama/backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include "ggml-backend.h"
#include "llama.h"
#include "specllama/device.h"

namespace specllama {

namespace {

std::atomic<bool> verbose_log{false};
thread_local ErrorLog* error_log = nullptr;
thread_local std::function<void(const char*)> log_listener;

}  // namespace

void append_error(const char* text) { error_log->text_ += text; }

namespace {

// Parts of messages that users cannot act on: marks of tokens in a model's file, a memory for whole
// windows (which was requested), a BOS token that the user wrote, layers of multi-token prediction
// that are not used, buffers that had to grow, experts that stay in the mapped file, attention
// without a fused kernel on a GPU, positions skipped after an image. The last three are reported
// better by fit.cpp (a context longer than those of the training) and by rpc.cpp (a lost
// connection).
constexpr std::array<std::string_view, 11> kIdle = {"control-looking token",
                                                    "using full-size SWA cache",
                                                    "Added a BOS token to the prompt",
                                                    "model has unused tensor",
                                                    "compute buffer size of",
                                                    "tensor overrides to CPU",
                                                    "resolve_fused_ops",
                                                    "non-consecutive token position",
                                                    "possible training context overflow",
                                                    "recv failed (bytes_recv",
                                                    "send failed (bytes_sent"};

bool is_idle(std::string_view text) {
    return std::ranges::any_of(
        kIdle, [&](std::string_view idle) { return text.find(idle) != std::string_view::npos; });
}

// llama.cpp calls this from any thread. A message may come in pieces; all except the first have the
// level CONT.
void log(ggml_log_level level, const char* text, void* /*user_data*/) {
    thread_local ggml_log_level last = GGML_LOG_LEVEL_INFO;
    if (level != GGML_LOG_LEVEL_CONT)
        last = level >= GGML_LOG_LEVEL_WARN && is_idle(text) ? GGML_LOG_LEVEL_INFO : level;
    if (last == GGML_LOG_LEVEL_ERROR && error_log != nullptr) append_error(text);
    const bool is_shown =
        verbose_log ||
        (last == GGML_LOG_LEVEL_WARN && (error_log == nullptr || !error_log->drops_warnings())) ||
        (last == GGML_LOG_LEVEL_ERROR && error_log == nullptr);
    if (is_shown) std::fputs(text, stderr);
    if (log_listener) log_listener(text);
}

// Makes llama.cpp call log(). The package llama_cpp replaces it when it is imported later.
void listen() {
    ggml_log_callback current = nullptr;
    void* data = nullptr;
    llama_log_get(&current, &data);
    if (current != log) llama_log_set(log, nullptr);
}

// Texts of standard library exceptions ("basic_string::substr: __pos (which is 3) > ...", "vector",
// "stoi") do not explain what is wrong with a file.
bool is_of_standard_library(std::string_view text) {
    const std::string_view where = text.substr(0, text.find(' '));
    return where.find("::") != std::string_view::npos ||
           (!text.empty() && text.find(' ') == std::string_view::npos);
}

}  // namespace

ErrorLog::ErrorLog(Warnings warnings) : warnings_(warnings), outer_(error_log) {
    error_log = this;
    listen();
}

ErrorLog::~ErrorLog() { error_log = outer_; }

// llama.cpp begins with the place in its code, and adds a prefix at every level: "llama_model_load:
// error loading model: error loading model hyperparameters: key ...". The user needs only the last
// part.
std::string ErrorLog::first() const {
    std::string line = text_.substr(0, text_.find('\n'));
    const auto colon = line.find(": ");
    if (colon != std::string::npos && colon < line.find(' ')) line.erase(0, colon + 2);
    for (const std::string_view again :
         {"error loading model: ", "error loading model hyperparameters: ",
          "error loading model vocabulary: ", "error loading model architecture: "})
        if (line.starts_with(again)) line.erase(0, again.size());
    const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
    line.erase(std::unique(line.begin(), line.end(), both_blank), line.end());
    while (line.ends_with(' ') || line.ends_with('.')) line.pop_back();
    return is_of_standard_library(line) ? "" : line;
}

std::string ErrorLog::reason() const {
    const std::string text = first();
    return text.empty() ? "llama.cpp cannot load it; the file is damaged" : text;
}

std::string rebuild(const std::string& variable, const std::string& flags) {
    const std::string version = SPECLLAMA_LLAMA_CPP_PYTHON;
    if (version.empty()) return "build it again" + (flags.empty() ? "" : " with " + flags);
    return (flags.empty() ? "" : variable + "=\"" + flags + "\" ") +
           "pip install --force-reinstall --no-cache-dir --no-deps llama-cpp-python==" + version;
}

void warn(const std::string& notice) { std::fprintf(stderr, "specllama: %s\n", notice.c_str()); }

void inform(const std::string& notice) {
    if (verbose_log) warn(notice);
}

bool is_verbose() { return verbose_log; }

LogListener::LogListener(std::function<void(const char*)> listener) {
    log_listener = std::move(listener);
}

LogListener::~LogListener() { log_listener = nullptr; }

void ensure_backend() {
    static std::once_flag once;
    listen();
    std::call_once(once, llama_backend_init);
}

ggml_log_callback log_callback() { return log; }

std::vector<ggml_backend_buffer_type_t> extra_buffer_types() {
    ensure_backend();
    std::vector<ggml_backend_buffer_type_t> types;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto get =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
    if (get == nullptr) return types;
    for (ggml_backend_buffer_type_t* type = get(cpu); type != nullptr && *type != nullptr; ++type)
        types.push_back(*type);
    return types;
}

bool is_amx(ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_name(type) == std::string_view("AMX");
}

const char* version() { return SPECLLAMA_VERSION; }

const char* llama_cpp_version() { return llama_version(); }

void set_verbose(bool verbose) {
    ensure_backend();
    verbose_log = verbose;
}

}  // namespace specllama
