#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "gguf/gguf_reader.h"

namespace specllama {

// Why heads cannot draft with this libllama, as the rest of a sentence; "": they can.
std::string hidden_states_fault();

// Why a file's embedding_length_out is wrong, as the rest of a sentence about the file; "": it is
// right. llama.cpp copies that many numbers of a state, even if it has fewer.
std::string width_fault(const GgufReader& file);

// A file of a model that drafts from the inputs of its target's layers: an EAGLE-3 head or a block
// drafter. Each function throws ModelError.
class LayerReaderFile : protected GgufReader {
 public:
    explicit LayerReaderFile(const std::string& path) : GgufReader(path, "a draft") {}

 protected:
    std::string key(const std::string& name) const;
    bool holds(const std::string& name) const { return tensor(name) != nullptr; }
    // Whether it uses the target's embeddings or output.
    bool shares() const { return !holds("token_embd.weight") || !holds("output.weight"); }

    // Checks that the states can be read.
    void check_states(const Header& target) const;
    [[noreturn]] void fail_width(std::int64_t width, const Header& target) const;
    void check_heads() const;
    void check_vectors() const;
    // Checks its tokens. It may have fewer than the target; d2t then lists them.
    void check_tokens(const Header& target) const;
    // The target's layers whose inputs it reads.
    std::vector<int> layers(const Header& target) const;
};

}  // namespace specllama
