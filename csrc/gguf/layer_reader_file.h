#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "gguf/gguf_reader.h"

namespace specllama {

// Why no head drafts with this libllama, as the rest of a sentence; "": heads do.
std::string hidden_states_fault();

// llama.cpp hands out as many numbers of a state as embedding_length_out says, however many there
// are. What is wrong with that, as the rest of a sentence about the file; "": nothing.
std::string width_fault(const GgufReader& file);

// A file of a model that drafts from the inputs of its target's layers: an EAGLE-3 head or a block
// drafter. Each function throws ModelError.
class LayerReaderFile : protected GgufReader {
 public:
    explicit LayerReaderFile(const std::string& path) : GgufReader(path, "a draft") {}

 protected:
    std::string key(const std::string& name) const;
    bool holds(const std::string& name) const { return tensor(name) != nullptr; }
    // Whether it uses embeddings or the output of the target.
    bool shares() const { return !holds("token_embd.weight") || !holds("output.weight"); }

    // That the states can be read at all.
    void check_states(const Header& target) const;
    [[noreturn]] void fail_width(std::int64_t width, const Header& target) const;
    void check_heads() const;
    void check_vectors() const;
    // Checks its tokens, which may be fewer than the target's; d2t then lists them.
    void check_tokens(const Header& target) const;
    // The target's layers whose inputs it reads.
    std::vector<int> layers(const Header& target) const;
};

}  // namespace specllama
