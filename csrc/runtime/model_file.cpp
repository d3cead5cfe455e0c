#include "specllama/model_file.h"

#include <mutex>
#include <set>
#include <vector>

#include "device/context_plan.h"
#include "device/offload.h"
#include "device/type_speed.h"
#include "gguf/gguf_file.h"
#include "gguf/head_file.h"
#include "gguf/projector_file.h"
#include "llama-cpp.h"
#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "runtime/drafting/draft_search.h"
#include "runtime/drafting/draft_types.h"
#include "runtime/vocab.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Prints a notice, once per process, that a file drafts although the user did not name it.
void announce(const NearbyDraft& draft, const std::string& target) {
    static std::mutex mutex;
    static std::set<std::string> announced;
    const std::lock_guard lock(mutex);
    if (announced.insert(draft.header.path + '\n' + target).second)
        warn("Found next to the model, and used to draft for it: " + draft.header.path + ", " +
             draft.what + ". To leave it out: draft=\"ngram\" or --draft ngram.");
}

}  // namespace

ProjectorFile read_projector(const std::string& path) {
    const Projector projector = check_projector(path);
    return {.sees = projector.sees, .hears = projector.hears, .width = projector.width};
}

ModelFile read_model_file(const std::string& path) {
    ensure_backend();
    const Header header = check_gguf(path);

    llama_model_params params = llama_model_default_params();
    params.no_alloc = true;
    params.load_mtp = header.is_prediction;
    params.load_mode = LLAMA_LOAD_MODE_NONE;  // with no_alloc, mapping a file fails an assertion
    // Reading a file needs no device.
    ggml_backend_dev_t no_devices[] = {nullptr};
    params.devices = no_devices;

    // A caller that searches many files must not get a warning about each.
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    const llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    const auto fail = [&](const std::string& what) {
        throw ModelError("Cannot use " + path + " as a model: " + what + ".");
    };
    if (!model) fail(errors.reason());
    const std::string fault = rotation_fault(header.rotation, llama_model_rope_type(model.get()));
    if (!fault.empty()) fail(fault);

    const Vocab vocab(llama_model_get_vocab(model.get()));
    ModelFile file;
    file.architecture = header.architecture;
    file.weight_type = llama_ftype_name(llama_model_ftype(model.get()));
    file.n_parameters = llama_model_n_params(model.get());
    file.weight_bytes = llama_model_size(model.get());
    file.n_tokens = vocab.size();
    file.width = llama_model_n_embd(model.get());
    file.vocabulary = vocab.fingerprint();
    file.can_draft = !llama_model_is_recurrent(model.get()) && !llama_model_is_hybrid(model.get());
    if (header.is_head()) file.head = header.head_name();
    file.brings_head = !header.is_head() && mtp_fault(path).empty();
    return file;
}

bool brings_head(const std::string& path) {
    check_gguf(path);
    return mtp_fault(path).empty();
}

void check_head(const std::string& head, const std::string& target) {
    const Header header = check_gguf(head);
    if (!header.is_head()) throw ModelError(head + " is a model, not a head.");
    check_head(header, check_gguf(target));
}

std::string automatic_draft(const std::string& target, const std::string& bundled_draft) {
    if (!bundled_draft.empty()) return bundled_draft;
    const Header header = check_gguf(target);
    if (header.is_head()) return "ngram";  // the session reports that it is not a model
    const bool predicts = mtp_fault(target).empty();
    const std::vector<NearbyDraft> found = drafts_next_to(header);
    if (!found.empty() &&
        (!predicts || found.front().bytes_per_token < own_prediction_bytes(header))) {
        announce(found.front(), target);
        return found.front().header.path;
    }
    return predicts ? "mtp" : "ngram";
}

std::string slow_types(const std::string& path) {
    if (!offload_devices({}).empty()) return "";
    return slow_types(check_gguf(path));
}

std::string draft_in_type(const std::string& draft, const std::string& target,
                          const std::string& type, const ProgressFunction& progress) {
    DraftModelOptions options;
    options.type = type;
    check_options(options);
    const DraftUse use{.type = type,
                       .n_threads = resolve_threads({}),
                       .target_bytes = check_gguf(target).weights.total};
    return choose_draft_types(check_gguf(draft), use, progress).header.path;
}

}  // namespace specllama
