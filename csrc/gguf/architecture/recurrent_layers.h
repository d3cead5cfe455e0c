#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "gguf/gguf_reader.h"

namespace specllama {

// The layers of a model file that keep a recurrent state: state spaces (Mamba), gated delta nets,
// short convolutions, RWKV.
class RecurrentLayers {
 public:
    // file: must outlive this object, and name its architecture.
    explicit RecurrentLayers(const GgufReader& file);

    // Throws ModelError if what the file states of these layers and the tensors in them contradict
    // each other in a way that llama.cpp finds out by an assertion only, or not at all. The tensors
    // must not be empty.
    void check() const;

    bool any() const { return !names_.empty(); }
    // Whether the layer of this name, "blk.N", is one of them.
    bool contains(const std::string& layer) const { return names_.contains(layer); }
    // Whether it is one of them and has no attention beside its recurrent state.
    bool is_without_attention(const std::string& layer) const;
    // How many numbers the state of this layer has, of one sequence; 0: it keeps none.
    double state_numbers(int layer) const;

 private:
    void check_width() const;
    void check_convolution(const std::string& layer) const;
    void check_heads(const std::string& layer) const;
    void check_time_mix(const std::string& layer) const;
    void check_needed(const std::string& layer) const;
    double compressor_numbers(int layer) const;
    // The number of a key of the architecture; 0: there is none.
    std::int64_t value(const char* key) const;
    // The four sizes of a tensor; nullptr: there is none of this name.
    const std::int64_t* sizes(const std::string& tensor) const;

    const GgufReader& file_;
    std::string architecture_;
    std::set<std::string> names_;
};

}  // namespace specllama
