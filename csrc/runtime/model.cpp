#include "runtime/model.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "device/offload.h"
#include "device/placement.h"
#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "llama/load_progress.h"
#include "specllama/error.h"
#include "system/huge_pages.h"

namespace specllama {

namespace {

// llama.cpp's constant for a ModelOptions::load_mode, which has been checked.
llama_load_mode load_mode(const std::string& name) {
    for (const llama_load_mode mode :
         {LLAMA_LOAD_MODE_NONE, LLAMA_LOAD_MODE_MMAP, LLAMA_LOAD_MODE_MLOCK,
          LLAMA_LOAD_MODE_MMAP_MLOCK, LLAMA_LOAD_MODE_DIRECT_IO})
        if (name == llama_load_mode_name(mode)) return mode;
    return LLAMA_LOAD_MODE_AUTO;
}

}  // namespace

Model::Model(llama_model_ptr model, ModelOptions options, Header header)
    : model_(std::move(model)),
      vocab_(llama_model_get_vocab(model_.get())),
      options_(std::move(options)),
      header_(std::move(header)) {}

std::shared_ptr<const Model> Model::load(const ModelOptions& options, Kernels kernels,
                                         const Header& header, const ProgressFunction& progress,
                                         bool with_mtp) {
    const int n_gpu_layers = options.n_gpu_layers.value_or(-1);
    ensure_backend();

    HugePages pages;
    LoadProgress carrier(progress, [&pages] { pages.request(); });
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = n_gpu_layers;
    params.load_mtp = with_mtp;
    params.load_mode = load_mode(options.load_mode);
    std::vector<float> split = options.tensor_split;
    split.resize(llama_max_devices());
    if (!options.tensor_split.empty()) params.tensor_split = split.data();
    Placement placement(header, options, kernels);
    placement.apply(params);
    params.progress_callback = LoadProgress::call;
    params.progress_callback_user_data = &carrier;
    std::vector<ggml_backend_dev_t> devices = offload_devices(options);
    devices.push_back(nullptr);
    // An empty list is passed, too: otherwise llama.cpp would send large batches to a device even
    // if it holds no layer. If all devices may be used, llama.cpp chooses.
    if (n_gpu_layers == 0 || !options.device.empty() || !options.rpc.empty() ||
        !options.tensor_split.empty())
        params.devices = devices.data();

    auto rpc_use = std::make_unique<RpcUse>(options.rpc);
    const NoSigpipe no_sigpipe;  // also for the threads of RPC connections, which start here
    const ErrorLog errors;
    const AssertGuard assertions;
    llama_model_ptr model(llama_model_load_from_file(options.path.c_str(), params));
    carrier.check(options.path);
    const std::shared_ptr<Model> loaded =
        checked(std::move(model), options, header, errors.reason());
    loaded->rpc_use_ = std::move(rpc_use);
    loaded->load_adapters();
    if (offload_devices(options).empty()) loaded->kernels_ = describe_kernels(header, kernels);
    return loaded;
}

void Model::load_adapters() {
    for (const LoraAdapter& one : options_.lora) {
        const ErrorLog errors(ErrorLog::Warnings::dropped);  // one warning per repacked matrix
        adapters_.push_back(llama_adapter_lora_init(model_.get(), one.path.c_str()));
        if (adapters_.back() == nullptr)
            throw ModelError("Cannot use " + one.path + " as a LoRA adapter: " + errors.reason() +
                             ".");
    }
}

void Model::apply_adapters(llama_context* context) const {
    if (adapters_.empty()) return;
    std::vector<llama_adapter_lora*> adapters = adapters_;
    std::vector<float> scales;
    scales.reserve(options_.lora.size());
    for (const LoraAdapter& one : options_.lora) scales.push_back(one.scale);
    llama_set_adapters_lora(context, adapters.data(), adapters.size(), scales.data());
}

std::shared_ptr<const Model> Model::load_vocabulary(const std::string& path) {
    check_gguf(path);
    ensure_backend();
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    // A vocabulary needs no device.
    ggml_backend_dev_t no_devices[] = {nullptr};
    params.devices = no_devices;
    const ErrorLog errors;
    const AssertGuard assertions;
    llama_model_ptr model(llama_model_load_from_file(path.c_str(), params));
    ModelOptions options;
    options.path = path;
    return checked(std::move(model), options, {}, errors.reason());
}

std::shared_ptr<Model> Model::checked(llama_model_ptr model, const ModelOptions& options,
                                      const Header& header, const std::string& error) {
    const auto fail = [&](const std::string& what) {
        throw ModelError("Cannot use " + options.path + " as a model: " + what + ".");
    };
    if (!model) fail(error);
    // EAGLE-3 heads have an encoder and a decoder; check_gguf has refused other encoders.
    if (!llama_model_has_decoder(model.get()) || llama_model_is_diffusion(model.get()))
        fail("it does not generate text token by token");
    const std::string fault = rotation_fault(header.rotation, llama_model_rope_type(model.get()));
    if (!fault.empty()) fail(fault);
    const llama_vocab* vocab = llama_model_get_vocab(model.get());
    // llama.cpp asserts these while tokenizing.
    if (llama_vocab_get_add_bos(vocab) && llama_vocab_bos(vocab) == LLAMA_TOKEN_NULL)
        fail("it requires a BOS token before every prompt but has none");
    if (llama_vocab_get_add_eos(vocab) && llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL)
        fail("it requires an EOS token after every prompt but has none");
    return std::shared_ptr<Model>(new Model(std::move(model), options, header));
}

// Architecture, size, type of the weights. llama.cpp infers the size from the number of layers, and
// is wrong for some models (256M for SmolLM2's 135M). So the size is taken from the file, or
// counted.
std::string Model::description() const {
    char desc[128];
    llama_model_desc(model_.get(), desc, sizeof(desc));
    std::string size = value("general.size_label");
    if (size.empty()) {
        const double millions = static_cast<double>(llama_model_n_params(model_.get())) / 1e6;
        char counted[32];
        std::snprintf(counted, sizeof(counted), millions < 1000 ? "%.1fM" : "%.1fB",
                      millions < 1000 ? millions : millions / 1000);
        size = counted;
    }
    std::string text = desc;
    const std::size_t from = text.find(' ') + 1;
    return text.replace(from, text.find(' ', from) - from, size);
}

std::string Model::value(const std::string& key) const {
    char text[64];
    const int n = llama_model_meta_val_str(model_.get(), key.c_str(), text, sizeof(text));
    return n < 0 ? "" : text;
}

std::string Model::architecture() const { return value("general.architecture"); }

std::optional<std::string> Model::chat_template() const {
    const char* text = llama_model_chat_template(model_.get(), nullptr);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

void check_vocabulary(const Model& draft, const Model& target, const std::string& what) {
    const std::string difference = target.vocab().difference(draft.vocab());
    if (!difference.empty())
        throw ModelError(what + " " + draft.path() + " cannot draft for " + target.path() + ": " +
                         difference + ".");
}

}  // namespace specllama
