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
    // header: of the file, which check_gguf found to be sound.
    // Throws InvalidArgument, ModelError, Interrupted, and what `progress` throws.
    static std::shared_ptr<const Model> load(const ModelOptions& options, const Header& header,
                                             const ProgressFunction& progress);

    const Vocab& vocab() const { return vocab_; }
    // As it was given.
    const std::string& path() const { return path_; }
    std::string description() const;
    // Its Jinja chat template, if it has one.
    std::optional<std::string> chat_template() const;
    // Whether positions are turned otherwise in long contexts than in short ones.
    bool is_longrope() const;

    // For the rest of this folder. llama.cpp takes a non-const pointer but does not write.
    llama_model* get() const { return model_.get(); }

 private:
    Model(llama_model_ptr model, const std::string& path);

    llama_model_ptr model_;
    Vocab vocab_;
    std::string path_;
};

}  // namespace specllama
