#pragma once

#include <memory>
#include <optional>
#include <string>

#include "llama-cpp.h"
#include "llama/gguf_file.h"
#include "llama/rpc.h"
#include "llama/vocab.h"
#include "specllama/config.h"

namespace specllama {

// Weights and vocabulary. Never changes once loaded, so it may be shared between contexts.
class Model {
 public:
    // header: of the file, which check_gguf found to be sound. with_mtp: with its layers of
    // multi-token prediction, which nothing else needs.
    // Throws InvalidArgument, ModelError, Interrupted, and what `progress` throws.
    static std::shared_ptr<const Model> load(const ModelOptions& options, const Header& header,
                                             const ProgressFunction& progress,
                                             bool with_mtp = false);

    // Loads the vocabulary and no weights. Throws ModelError.
    static std::shared_ptr<const Model> load_vocabulary(const std::string& path);

    const Vocab& vocab() const { return vocab_; }
    // As it was given.
    const std::string& path() const { return options_.path; }
    // What it was loaded with; of a vocabulary alone nothing but the path, and no header.
    const ModelOptions& options() const { return options_; }
    const Header& header() const { return header_; }
    std::string description() const;
    std::string architecture() const;
    // Numbers of a token's state between two layers, and layers, those of multi-token prediction
    // left out.
    int width() const { return llama_model_n_embd(model_.get()); }
    int n_layers() const { return llama_model_n_layer(model_.get()); }
    // Which of the CPU's kernels multiply how much of its weights, e.g. "AMX 76 %, plain 24 %"; ""
    // where a GPU holds weights, or there are none.
    const std::string& kernels() const { return kernels_; }
    // Its Jinja chat template, if it has one.
    std::optional<std::string> chat_template() const;

    // For the rest of this folder. llama.cpp takes a non-const pointer but does not write.
    llama_model* get() const { return model_.get(); }

 private:
    Model(llama_model_ptr model, ModelOptions options, Header header);
    // error: what llama.cpp said while it loaded.
    static std::shared_ptr<Model> checked(llama_model_ptr model, const ModelOptions& options,
                                          const Header& header, const std::string& error);
    // What the file says for a key; "" where it says nothing.
    std::string value(const std::string& key) const;

    std::unique_ptr<const RpcUse> rpc_use_;  // outlives the model
    llama_model_ptr model_;
    Vocab vocab_;
    ModelOptions options_;
    Header header_;
    std::string kernels_;
};

}  // namespace specllama
