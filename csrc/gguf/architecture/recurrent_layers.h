#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "gguf/gguf_reader.h"

namespace specllama {

// The layers of a model file with a recurrent state: state spaces (Mamba), gated delta nets, short
// convolutions, RWKV.
class RecurrentLayers {
 public:
    // file: must outlive this object, and state its architecture.
    explicit RecurrentLayers(const GgufReader& file);

    // Throws ModelError if the file's keys contradict the tensors of these layers in a way that
    // llama.cpp only asserts, or does not notice. The tensors must not be empty.
    void check() const;

    bool any() const { return !names_.empty(); }
    // Whether the layer of this name, "blk.N", is one of them.
    bool contains(const std::string& layer) const { return names_.contains(layer); }
    // Whether it is one of them and has no attention in addition to its recurrent state.
    bool is_without_attention(const std::string& layer) const;
    // Numbers of the state of this layer, per sequence; 0: no state.
    double state_numbers(int layer) const;

 private:
    void check_width() const;
    void check_convolution(const std::string& layer) const;
    void check_heads(const std::string& layer) const;
    void check_time_mix(const std::string& layer) const;
    void check_needed(const std::string& layer) const;
    double compressor_numbers(int layer) const;
    // The number of a key of the architecture; 0: missing.
    std::int64_t value(const char* key) const;
    // The four sizes of a tensor; nullptr: no tensor of this name.
    const std::int64_t* sizes(const std::string& tensor) const;

    const GgufReader& file_;
    std::string architecture_;
    std::set<std::string> names_;
};

}  // namespace specllama
