#include "llama/assert_guard.h"

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ggml.h"

extern "C" void ggml_print_backtrace(void);  // exported, but in no installed header

namespace specllama {

namespace {

thread_local AssertGuard* innermost = nullptr;
ggml_abort_callback_t callback_before = nullptr;

// "/some/path/model.cpp:12: GGML_ASSERT(a > 0) failed" as a part of a sentence.
std::string description(std::string_view message) {
    constexpr std::string_view kBegin = "GGML_ASSERT(";
    constexpr std::string_view kEnd = ") failed";
    const auto colon = message.find(": ");
    std::string_view where = message.substr(0, colon);
    where.remove_prefix(where.rfind('/') + 1);  // npos + 1 is 0
    std::string_view what =
        colon == std::string_view::npos ? std::string_view() : message.substr(colon + 2);
    if (what.starts_with(kBegin) && what.ends_with(kEnd)) {
        what.remove_prefix(kBegin.size());
        what.remove_suffix(kEnd.size());
    }
    return "an assertion of llama.cpp failed (" + std::string(where) + ": " + std::string(what) +
           "); the file is damaged, or this llama.cpp does not support its kind";
}

}  // namespace

void fail_assertion(const char* message) {
    // rpc.cpp reports more about lost RPC servers.
    const bool is_of_server = std::string_view(message).find("ggml-rpc") != std::string_view::npos;
    if (innermost != nullptr && !is_of_server && innermost->covers(message)) {
        innermost->failed_ = description(message);
        throw std::runtime_error(innermost->failed_);
    }
    if (callback_before != nullptr) {
        callback_before(message);
        return;
    }
    // As ggml does by default.
    std::fprintf(stderr, "%s\n", message);
    ggml_print_backtrace();
}

// Graphs are built in libmtmd's files and in ggml.c, and computed in other files.
bool AssertGuard::covers(std::string_view message) const {
    const std::string_view file = message.substr(0, message.find(": "));
    return scope_ == Scope::all || file.find("/mtmd/") != std::string_view::npos ||
           file.find("/ggml.c:") != std::string_view::npos;
}

AssertGuard::AssertGuard(Scope scope) : scope_(scope), outer_(std::exchange(innermost, this)) {
    static std::once_flag once;
    std::call_once(once, [] { callback_before = ggml_set_abort_callback(fail_assertion); });
}

AssertGuard::~AssertGuard() { innermost = outer_; }

AssertGuard::Suspend::Suspend() : before_(std::exchange(innermost, nullptr)) {}

AssertGuard::Suspend::~Suspend() { innermost = before_; }

}  // namespace specllama
