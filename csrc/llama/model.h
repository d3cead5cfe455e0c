#pragma once

#include <memory>
#include <optional>
#include <string>

#include "llama-cpp.h"
#include "llama/gguf_file.h"
#include "llama/vocab.h"
#include "specllama/config.h"

namespace specllama {

// Weights and vocabulary. Never changes once loaded, so it may be shared between contexts.
class Model {
 public:
    // Throws InvalidArgument, ModelError, Interrupted, and what `progress` throws.
    static std::shared_ptr<const Model> load(const ModelOptions& options,
                                             const ProgressFunction& progress);

    const Vocab& vocab() const { return vocab_; }
    // As it was given.
    const std::string& path() const { return path_; }
    int n_ctx_train() const;
    std::string description() const;
    // Its Jinja chat template, if it has one.
    std::optional<std::string> chat_template() const;
    // Whether some of it lies in the memory of a device other than the processor's.
    bool on_device() const { return on_device_; }
    // A weight that makes decoding depend on the width of a batch, and whether llama.cpp may have
    // stored weights in another order: see exact.h.
    const std::string& inexact_weight() const { return weights_.inexact; }
    bool repacks() const { return repacks_; }
    // Bytes that the KV memory of one token takes at least, for numbers of the given size.
    double kv_bytes_per_token(double bytes_per_number) const;

    // For the rest of this folder. llama.cpp takes a non-const pointer but does not write.
    llama_model* get() const { return model_.get(); }

 private:
    Model(llama_model_ptr model, const ModelOptions& options, Weights weights);

    llama_model_ptr model_;
    Vocab vocab_;
    std::string path_;
    Weights weights_;
    bool on_device_;
    bool repacks_;
};

}  // namespace specllama
