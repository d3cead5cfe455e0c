#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/kernels.h"
#include "device/rpc.h"
#include "gguf/gguf_file.h"
#include "llama-cpp.h"
#include "runtime/vocab.h"
#include "specllama/session_options.h"

namespace specllama {

// Weights and vocabulary. Immutable once loaded, so contexts may share it.
class Model {
 public:
    // kernels: those of the CPU. header: the result of check_gguf for the file. with_mtp: whether
    // to load the layers of multi-token prediction, which are needed only to draft with them.
    // Throws InvalidArgument, ModelError, Interrupted, and what `progress` throws.
    static std::shared_ptr<const Model> load(const ModelOptions& options, Kernels kernels,
                                             const Header& header, const ProgressFunction& progress,
                                             bool with_mtp = false);

    // Loads only the vocabulary. Throws ModelError.
    static std::shared_ptr<const Model> load_vocabulary(const std::string& path);

    const Vocab& vocab() const { return vocab_; }
    // The path as given.
    const std::string& path() const { return options_.path; }
    // The options and the header with which the model was loaded. A vocabulary alone has only the
    // path and no header.
    const ModelOptions& options() const { return options_; }
    const Header& header() const { return header_; }
    std::string description() const;
    std::string architecture() const;
    // Length of a token's state between two layers; number of layers, without those of multi-token
    // prediction.
    int width() const { return llama_model_n_embd(model_.get()); }
    int n_layers() const { return llama_model_n_layer(model_.get()); }
    // The CPU kernels and their shares of the weights, e.g. "AMX 76 %, plain 24 %"; "": a GPU holds
    // weights, or there are none.
    const std::string& kernels() const { return kernels_; }
    // Its chat template in Jinja, if it has one.
    std::optional<std::string> chat_template() const;

    // For the rest of this folder. llama.cpp takes a non-const pointer but does not write.
    llama_model* get() const { return model_.get(); }
    // Applies the adapters to a context of this model.
    void apply_adapters(llama_context* context) const;

 private:
    Model(llama_model_ptr model, ModelOptions options, Header header);
    // Throws ModelError if the model cannot be used. error: llama.cpp's message while loading.
    static std::shared_ptr<Model> checked(llama_model_ptr model, const ModelOptions& options,
                                          const Header& header, const std::string& error);
    // Loads the adapters of the options, which must be checked before.
    void load_adapters();
    // The file's value of a key; "": none.
    std::string value(const std::string& key) const;

    std::unique_ptr<const RpcUse> rpc_use_;  // outlives the model
    llama_model_ptr model_;
    std::vector<llama_adapter_lora*>
        adapters_;  // owned by the model, in the order of options_.lora
    Vocab vocab_;
    ModelOptions options_;
    Header header_;
    std::string kernels_;
};

// Throws ModelError if the vocabularies differ, so that `draft` cannot draft for `target`. what:
// the subject of the message, e.g. "The draft model".
void check_vocabulary(const Model& draft, const Model& target, const std::string& what);

}  // namespace specllama
