#include "gguf/layer_reader_file.h"

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "llama/hidden_states.h"

namespace specllama {

std::string hidden_states_fault() {
    return hidden_states::available()
               ? ""
               : "this libllama does not provide the hidden states that heads need";
}

std::string width_fault(const GgufReader& file) {
    const std::string prefix = file.text("general.architecture").value_or("") + ".embedding_length";
    const std::int64_t width = file.number(prefix).value_or(0);
    const std::int64_t out = file.number(prefix + "_out").value_or(0);
    if (out == 0 || out == width) return "";
    return "its embedding_length_out is " + std::to_string(out) + ", but its states have " +
           std::to_string(width) + " numbers";
}

std::string LayerReaderFile::key(const std::string& name) const {
    return *text("general.architecture") + "." + name;
}

void LayerReaderFile::check_states(const Header& target) const {
    if (const std::string fault = hidden_states_fault(); !fault.empty()) fail(fault);
    if (!target.traits.layer_inputs)
        fail("llama.cpp does not provide the layer inputs of " + target.path + " (" +
             target.architecture + ")");
    if (const std::string fault = width_fault(*this); !fault.empty()) fail(fault);
}

void LayerReaderFile::fail_width(std::int64_t width, const Header& target) const {
    fail("it reads states of " + std::to_string(width) + " numbers, but those of " + target.path +
         " have " + std::to_string(target.width));
}

void LayerReaderFile::check_heads() const {
    const auto keys = number(key("attention.key_length"));
    const auto values = number(key("attention.value_length"));
    if (keys.has_value() != values.has_value() || keys != values)
        fail("its attention's keys and values differ in length");
}

void LayerReaderFile::check_vectors() const {
    for (const Tensor& tensor : tensors()) {
        const auto& n = tensor.sizes;
        const ggml_type wanted = tensor.name == "d2t" ? GGML_TYPE_I64 : GGML_TYPE_F32;
        if (n[1] * n[2] * n[3] == 1 && tensor.name != "conf_proj.weight")
            check_type(tensor, {{wanted}});
    }
}

void LayerReaderFile::check_tokens(const Header& target) const {
    const int n_vocab = target.n_vocab;
    if (const Tensor* embeddings = tensor("token_embd.weight");
        embeddings != nullptr && embeddings->sizes[1] < n_vocab)
        fail("it has embeddings for fewer tokens than the vocabulary");
    const Tensor* d2t = tensor("d2t");
    if (d2t == nullptr) return;
    const auto n = static_cast<std::size_t>(d2t->sizes[0]);
    if (!holds("output.weight") && n != static_cast<std::size_t>(n_vocab))
        fail("it has a vocabulary of its own, but no output.weight for it");
    for (const std::int64_t token : integers(*d2t))
        if (token < 0 || token >= n_vocab)
            fail("its d2t names token " + std::to_string(token) + ", but the vocabulary has " +
                 std::to_string(n_vocab) + " tokens");
}

std::vector<int> LayerReaderFile::layers(const Header& target) const {
    const std::vector<std::int64_t> given = numbers(key("target_layers"));
    const int n_layers = static_cast<int>(target.layers.size());
    const int last = target.traits.last_output ? n_layers : n_layers - 1;
    for (const std::int64_t layer : given)
        if (layer < 0 || layer > last)
            fail("it reads the input of layer " + std::to_string(layer) + ", but " + target.path +
                 " has " + std::to_string(n_layers) + " layers");
    return {given.begin(), given.end()};
}

}  // namespace specllama
