#include "constraint/llguidance.h"

#include <dlfcn.h>

#include <mutex>
#include <optional>
#include <string_view>

#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::string_view kVersion = "llguidance@" SPECLLAMA_LLGUIDANCE;
constexpr const char* kInstall = "run: pip install llguidance==" SPECLLAMA_LLGUIDANCE;

struct Library {
    std::mutex mutex;
    std::string path;
    std::optional<Llguidance> functions;
};

Library& library() {
    static Library one;
    return one;
}

template <typename Function>
void find(void* handle, const char* name, Function& function) {
    void* const found = dlsym(handle, name);
    if (found == nullptr)
        throw InvalidArgument(std::string("llguidance has no function ") + name + "; " + kInstall +
                              ".");
    function = reinterpret_cast<Function>(found);
}

// The handle is never closed, because matchers may live until the process ends.
Llguidance load(const std::string& path) {
    if (path.empty())
        throw InvalidArgument(
            std::string("Grammars and schemas need llguidance, which is not installed; ") +
            kInstall + ".");
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        throw InvalidArgument("llguidance cannot be loaded: " + std::string(dlerror()) + ".");
    Llguidance api{};
    find(handle, "llg_get_version", api.get_version);
    const std::string_view version = api.get_version();
    if (version.substr(0, version.find(' ')) != kVersion)
        throw InvalidArgument("specllama needs llguidance " SPECLLAMA_LLGUIDANCE ", but " +
                              std::string(version) + " is installed; " + kInstall + ".");
    find(handle, "llg_new_tokenizer_v2", api.new_tokenizer_v2);
    find(handle, "llg_free_tokenizer", api.free_tokenizer);
    find(handle, "llg_tokenize_bytes", api.tokenize_bytes);
    find(handle, "llg_constraint_init_set_defaults", api.constraint_init_set_defaults);
    find(handle, "llg_new_matcher", api.new_matcher);
    find(handle, "llg_clone_matcher", api.clone_matcher);
    find(handle, "llg_free_matcher", api.free_matcher);
    find(handle, "llg_matcher_get_error", api.matcher_get_error);
    find(handle, "llg_matcher_compute_mask_into", api.matcher_compute_mask_into);
    find(handle, "llg_matcher_get_mask_byte_size", api.matcher_get_mask_byte_size);
    find(handle, "llg_matcher_validate_tokens", api.matcher_validate_tokens);
    find(handle, "llg_matcher_consume_tokens", api.matcher_consume_tokens);
    find(handle, "llg_matcher_is_stopped", api.matcher_is_stopped);
    return api;
}

}  // namespace

void set_llguidance_path(const std::string& path) {
    Library& one = library();
    const std::lock_guard lock(one.mutex);
    one.path = path;
}

const Llguidance& llguidance() {
    Library& one = library();
    const std::lock_guard lock(one.mutex);
    if (!one.functions) one.functions = load(one.path);
    return *one.functions;
}

}  // namespace specllama
