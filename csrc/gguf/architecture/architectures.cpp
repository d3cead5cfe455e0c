#include "gguf/architecture/architectures.h"

#include <algorithm>
#include <array>

namespace specllama {

namespace {

using Kind = Architecture::Kind;
using Mtp = Architecture::Mtp;

// As in this version of llama.cpp; a test compares them with its source.
//
// - layer_inputs: qwen4exp has none, since its layer inputs in llama.cpp are wider than its states,
//   which fails an assertion there.
// - one_sequence: PLaMo 2 stores states in the wrong places; the two kinds of RWKV save the wrong
//   token as the one before the next.
// - hidden_windows: the states of DeepSeek 4 reach back less far than its windows.
constexpr std::array kArchitectures = {
    Architecture{.name = "eagle3", .kind = Kind::eagle3},
    Architecture{.name = "dflash", .kind = Kind::block},
    Architecture{.name = "gemma4-assistant", .kind = Kind::assistant},

    Architecture{.name = "bert", .kind = Kind::encoder},
    Architecture{.name = "modern-bert", .kind = Kind::encoder},
    Architecture{.name = "nomic-bert", .kind = Kind::encoder},
    Architecture{.name = "nomic-bert-moe", .kind = Kind::encoder},
    Architecture{.name = "neo-bert", .kind = Kind::encoder},
    Architecture{.name = "jina-bert-v2", .kind = Kind::encoder},
    Architecture{.name = "jina-bert-v3", .kind = Kind::encoder},
    Architecture{.name = "eurobert", .kind = Kind::encoder},
    Architecture{.name = "gemma-embedding", .kind = Kind::encoder},
    Architecture{.name = "llama-embed", .kind = Kind::encoder},
    Architecture{.name = "t5", .kind = Kind::encoder},
    Architecture{.name = "t5encoder", .kind = Kind::encoder},
    Architecture{.name = "wavtokenizer-dec", .kind = Kind::encoder},
    Architecture{.name = "clip", .kind = Kind::encoder},

    Architecture{.name = "llama", .layer_inputs = true},
    Architecture{.name = "qwen3", .layer_inputs = true},
    Architecture{.name = "qwen3moe", .layer_inputs = true},
    Architecture{.name = "qwen3next", .layer_inputs = true, .mtp = Mtp::one, .mtp_crops = true},
    Architecture{.name = "qwen35", .layer_inputs = true, .mtp = Mtp::one, .snapshots = true},
    Architecture{.name = "qwen35moe", .layer_inputs = true, .mtp = Mtp::one, .snapshots = true},
    Architecture{.name = "qwen4exp", .snapshots = true},
    Architecture{.name = "lfm2", .layer_inputs = true, .snapshots = true},
    Architecture{.name = "lfm2moe", .layer_inputs = true, .snapshots = true},
    Architecture{
        .name = "nemotron_h", .layer_inputs = true, .last_output = true, .snapshots = true},
    Architecture{.name = "nemotron_h_moe",
                 .layer_inputs = true,
                 .last_output = true,
                 .mtp = Mtp::one,
                 .snapshots = true},
    Architecture{.name = "minimax-01", .layer_inputs = true},
    Architecture{.name = "minimax-m2", .layer_inputs = true},
    Architecture{.name = "nanbeige", .layer_inputs = true},
    Architecture{.name = "hunyuan_vl", .layer_inputs = true},
    Architecture{.name = "hunyuan-dense", .layer_inputs = true},
    Architecture{.name = "gemma4", .layer_inputs = true, .assistant = true},
    Architecture{.name = "bailingmoe3", .layer_inputs = true, .mtp = Mtp::one, .snapshots = true},
    Architecture{.name = "kimi-k3", .snapshots = true},
    Architecture{.name = "glm5-next", .snapshots = true},
    Architecture{.name = "glm4moe", .mtp = Mtp::one},
    Architecture{.name = "glm-dsa", .mtp = Mtp::one},
    Architecture{.name = "deepseek2", .mtp = Mtp::one},
    Architecture{.name = "deepseek32", .mtp = Mtp::one},
    Architecture{.name = "deepseek4",
                 .layer_inputs = true,
                 .last_output = true,
                 .mtp = Mtp::one,
                 .mtp_crops = true,
                 .snapshots = true,
                 .hidden_windows = true,
                 .one_kv_type = true},
    Architecture{.name = "hy_v3", .mtp = Mtp::chain},
    Architecture{.name = "step35", .mtp = Mtp::chain, .mtp_crops = true},
    Architecture{.name = "mimo2",
                 .layer_inputs = true,
                 .last_output = true,
                 .mtp = Mtp::chain,
                 .mtp_crops = true},

    Architecture{.name = "plamo2", .one_sequence = true},
    Architecture{.name = "rwkv6qwen2", .one_sequence = true},
    Architecture{.name = "arwkv7", .one_sequence = true},

    Architecture{.name = "gpt-oss", .layer_inputs = true, .windows = {2}},
    Architecture{.name = "cohere2", .windows = {4}},
    Architecture{.name = "cohere2moe", .mtp = Mtp::one, .windows = {4, true}},
    Architecture{.name = "gemma2", .windows = {2, false, 4096}},
    Architecture{.name = "gemma3", .windows = {6}},
    Architecture{.name = "gemma3n", .windows = {5}},
    Architecture{.name = "exaone4", .windows = {4, false, 4096}},
    Architecture{.name = "exaone-moe", .windows = {4}},
    Architecture{.name = "llama4", .windows = {4}},
    Architecture{.name = "olmo2", .windows = {4}},
    Architecture{.name = "plamo3", .windows = {8}},
    Architecture{.name = "afmoe", .windows = {4}},
    Architecture{.name = "laguna", .windows = {4, true}},
    Architecture{.name = "mellum", .windows = {4}},
    Architecture{.name = "muse-glimmer", .layer_inputs = true, .windows = {4}},
    Architecture{.name = "smallthinker", .windows = {4, true}},
};

constexpr Architecture kDefaults;

}  // namespace

const Architecture& architecture(std::string_view name) {
    const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
    return row == kArchitectures.end() ? kDefaults : *row;
}

}  // namespace specllama
