#include "gguf/architectures.h"

#include <algorithm>
#include <array>

namespace specllama {

namespace {

using Kind = Architecture::Kind;

// As this version of llama.cpp has them; tests compare names and snapshots with its source.
//
// - mtp: of qwen3next, the graph hands out the states of some rows only, and llama.cpp reads beyond
//   them.
// - one_sequence: PLaMo 2 stores states in the wrong places; the two kinds of RWKV save another
//   token than the last one as that before the next.
// - hidden_windows: the states of DeepSeek 4 do not go back as far as its windows reach.
constexpr std::array kArchitectures = {
    Architecture{.name = "eagle3", .kind = Kind::eagle3},
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
    Architecture{.name = "dflash", .kind = Kind::encoder},

    Architecture{.name = "llama", .layer_inputs = true},
    Architecture{.name = "qwen3", .layer_inputs = true},
    Architecture{.name = "qwen3moe", .layer_inputs = true},
    Architecture{.name = "qwen3next", .layer_inputs = true},
    Architecture{.name = "qwen35", .layer_inputs = true, .mtp = true, .snapshots = true},
    Architecture{.name = "qwen35moe", .layer_inputs = true, .mtp = true, .snapshots = true},
    Architecture{.name = "lfm2", .layer_inputs = true, .snapshots = true},
    Architecture{.name = "lfm2moe", .snapshots = true},
    Architecture{.name = "nemotron_h", .layer_inputs = true, .snapshots = true},
    Architecture{.name = "nemotron_h_moe", .layer_inputs = true, .mtp = true, .snapshots = true},
    Architecture{.name = "minimax-m2", .layer_inputs = true},
    Architecture{.name = "gemma4", .layer_inputs = true, .assistant = true},
    Architecture{.name = "glm4moe", .mtp = true},
    Architecture{.name = "deepseek2", .mtp = true},
    Architecture{.name = "deepseek4", .hidden_windows = true, .one_kv_type = true},

    Architecture{.name = "plamo2", .one_sequence = true},
    Architecture{.name = "rwkv6qwen2", .one_sequence = true},
    Architecture{.name = "arwkv7", .one_sequence = true},

    Architecture{.name = "gpt-oss", .layer_inputs = true, .windows = {2}},
    Architecture{.name = "cohere2", .windows = {4}},
    Architecture{.name = "cohere2moe", .mtp = true, .windows = {4, true}},
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
    Architecture{.name = "muse-glimmer", .windows = {4}},
    Architecture{.name = "smallthinker", .windows = {4, true}},
};

constexpr Architecture kDefaults;

}  // namespace

const Architecture& architecture(std::string_view name) {
    const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
    return row == kArchitectures.end() ? kDefaults : *row;
}

}  // namespace specllama
