#include "gguf/architecture/recurrent_layers.h"

#include <algorithm>
#include <vector>

namespace specllama {

RecurrentLayers::RecurrentLayers(const GgufReader& file)
    : file_(file), architecture_(file.text("general.architecture").value_or("")) {
    for (const auto& [name, type, sizes, bytes] : file.tensors()) {
        for (const char* part : {".ssm_", ".shortconv.", ".time_mix_"})
            if (const auto at = name.find(part); at != std::string::npos)
                names_.insert(name.substr(0, at));
    }
}

void RecurrentLayers::check() const {
    check_width();
    for (const std::string& layer : names_) {
        check_convolution(layer);
        check_heads(layer);
        check_time_mix(layer);
        check_needed(layer);
    }
}

// For two architectures, llama.cpp asserts this width before it reads any tensor.
void RecurrentLayers::check_width() const {
    if (architecture_ != "jamba" && architecture_ != "granitehybrid") return;
    const std::int64_t inner = value("ssm.inner_size");
    const std::int64_t width = value("embedding_length");
    if (inner != 2 * width)
        file_.fail("its ssm.inner_size is " + std::to_string(inner) +
                   ", not twice its embedding_length of " + std::to_string(width));
}

// llama.cpp takes the size of the memory from the file's keys, but the convolution's channels from
// its tensor. For some architectures it does not compare the two.
void RecurrentLayers::check_convolution(const std::string& layer) const {
    if (const auto* conv = sizes(layer + ".ssm_conv1d.weight")) {
        const double channels = static_cast<double>(value("ssm.inner_size")) +
                                2 * static_cast<double>(value("ssm.group_count")) *
                                    static_cast<double>(value("ssm.state_size"));
        if (static_cast<double>(conv[1]) != channels)
            file_.fail("its tensor " + layer + ".ssm_conv1d.weight has " + std::to_string(conv[1]) +
                       " channels, which contradicts its ssm.inner_size of " +
                       std::to_string(value("ssm.inner_size")));
    }
    if (const auto* conv = sizes(layer + ".shortconv.conv.weight"); conv && conv[0] < 2)
        file_.fail("its tensor " + layer + ".shortconv.conv.weight sees one token only");
}

// In a state space, ssm_d has one number for each head. In Mamba 2 it has the shape [1, heads], and
// the heads have groups. llama.cpp divides by both counts.
void RecurrentLayers::check_heads(const std::string& layer) const {
    const auto* d = sizes(layer + ".ssm_d");
    if (!d) return;
    const std::int64_t inner = value("ssm.inner_size");
    const std::int64_t heads = d[0] * d[1];
    const std::int64_t groups = d[0] == 1 ? value("ssm.group_count") : 1;
    if (groups < 1 || inner % heads != 0 || inner % groups != 0)
        file_.fail("its ssm.inner_size of " + std::to_string(inner) + " is not a multiple of its " +
                   std::to_string(heads) + " heads and " + std::to_string(groups) + " groups");
}

// llama.cpp divides by the size of RWKV's heads.
void RecurrentLayers::check_time_mix(const std::string& layer) const {
    if (sizes(layer + ".time_mix_output.weight") && value("wkv.head_size") < 1)
        file_.fail("its wkv.head_size is " + std::to_string(value("wkv.head_size")));
}

// llama.cpp uses these tensors without a check, but some architectures may have others instead.
void RecurrentLayers::check_needed(const std::string& layer) const {
    if (!sizes(layer + ".ssm_conv1d.weight")) return;
    const auto need = [&](const char* tensor) {
        if (!sizes(layer + tensor)) file_.fail("its tensor " + layer + tensor + " is missing");
    };
    if (!sizes(layer + ".ssm_in.weight")) {
        need(".attn_qkv.weight");
        need(".attn_gate.weight");
    }
    if (const auto* d = sizes(layer + ".ssm_d"); d && d[0] == 1) need(".ssm_conv1d.bias");
}

bool RecurrentLayers::is_without_attention(const std::string& layer) const {
    return contains(layer) && !sizes(layer + ".attn_k.weight");
}

// As in llama.cpp's recurrent memory: the inputs that the convolution still needs, and the state.
double RecurrentLayers::state_numbers(int layer) const {
    if (!contains("blk." + std::to_string(layer))) return compressor_numbers(layer);
    const auto real = [&](const char* key) { return static_cast<double>(value(key)); };
    const double width = real("embedding_length");
    double numbers = 0;
    if (const double head = real("wkv.head_size"); head > 0) {
        const bool tells = file_.number(architecture_ + ".token_shift_count").has_value();
        numbers = ((tells ? real("token_shift_count") : 2) + head) * width;
    } else if (const double seen = real("shortconv.l_cache"); seen > 0) {
        numbers = (seen - 1) * width;
    } else if (const double length = real("kda.head_dim"); length > 0) {
        const double before = std::max(real("ssm.conv_kernel") - 1, 0.0);
        numbers = real("attention.head_count") * length * (3 * before + length);
    } else {
        const double inner = real("ssm.inner_size");
        const double state = real("ssm.state_size");
        numbers = std::max(real("ssm.conv_kernel") - 1, 0.0) *
                      (inner + 2 * real("ssm.group_count") * state) +
                  state * inner;
    }
    return numbers;
}

// DeepSeek 4 compresses groups of 4 or 128 tokens into one, and keeps the incomplete group: a key
// and its weight for each token. With groups of 4, it keeps two groups.
double RecurrentLayers::compressor_numbers(int layer) const {
    const std::vector<std::int64_t> ratios =
        file_.numbers(architecture_ + ".attention.compress_ratios");
    if (layer >= std::ssize(ratios) || ratios[layer] == 0) return 0;
    const auto ratio = static_cast<double>(ratios[layer]);
    const auto head = static_cast<double>(value("attention.key_length"));
    if (ratio != 4) return 2 * ratio * head;
    return 8 * ratio * (head + static_cast<double>(value("attention.indexer.key_length")));
}

std::int64_t RecurrentLayers::value(const char* key) const {
    return file_.number(architecture_ + "." + key).value_or(0);
}

const std::int64_t* RecurrentLayers::sizes(const std::string& tensor) const {
    const auto* found = file_.tensor(tensor);
    return found == nullptr ? nullptr : found->sizes.data();
}

}  // namespace specllama
