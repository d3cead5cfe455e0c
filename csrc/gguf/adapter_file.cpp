#include "gguf/adapter_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "fnv.h"
#include "gguf/gguf_reader.h"
#include "llama/backend.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::string_view kA = ".lora_a";
constexpr std::string_view kB = ".lora_b";
constexpr const char* kEmbeddings = "token_embd.weight";

// llama.cpp cannot unpack other types in all places where they would be used.
constexpr std::array kTypes = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};

// For some architectures llama.cpp reserves few nodes for the graph, and asserts that they suffice:
// Qwen 3.5 with batches of 32 ends the process with 21 adapters or more.
constexpr std::size_t kMostAdapters = 8;

class AdapterReader : private GgufReader {
 public:
    // n_layers: number of the model's layers that are loaded.
    AdapterReader(const std::string& path, const GgufReader& model, std::size_t n_layers)
        : GgufReader(path, "a LoRA adapter"), model_(model), n_layers_(n_layers) {}

    void check() const {
        if (text("general.type") != "adapter" || text("adapter.type") != "lora")
            fail("it is not a LoRA adapter");
        const std::string architecture = text("general.architecture").value_or("");
        const std::string other = *model_.text("general.architecture");
        if (architecture != other)
            fail("it is for models of the architecture " + architecture + ", not " + other);
        if (has("adapter.alora.invocation_tokens"))
            fail("it is an activated LoRA (aLoRA), which is not supported");
        if (has("adapter.lora.alpha") && !std::isfinite(real("adapter.lora.alpha").value_or(NAN)))
            fail("its adapter.lora.alpha is not a finite 32-bit float");
        check_pairs();
    }

    void add_to(Weights& weights) const {
        for (const Tensor& tensor : tensors()) add_weights(tensor.name, tensor.bytes, weights);
    }

 private:
    struct Pair {
        const Tensor* a = nullptr;
        const Tensor* b = nullptr;
    };

    // An adapter adds B (A x) to the product with a matrix of n_in x n_out, with A of n_in x rank
    // and B of rank x n_out, once for each expert.
    void check_pairs() const {
        std::map<std::string, Pair> pairs;
        bool has_norms = false;
        for (const Tensor& tensor : tensors()) {
            if (tensor.name.ends_with("_norm.weight")) {
                has_norms = true;
                continue;
            }
            check_type(tensor, kTypes);
            const std::string_view name = tensor.name;
            if (name.ends_with(kA))
                pairs[std::string(name.substr(0, name.size() - kA.size()))].a = &tensor;
            else if (name.ends_with(kB))
                pairs[std::string(name.substr(0, name.size() - kB.size()))].b = &tensor;
            else
                fail("its tensor " + tensor.name + " is not part of a LoRA adapter");
        }
        if (pairs.empty()) fail("it changes nothing");
        if (has_norms) warn("llama.cpp ignores the norms of the adapter " + path() + ".");
        for (const auto& [name, pair] : pairs) {
            check_changed(name);
            if (pair.a == nullptr || pair.b == nullptr)
                fail("it has only one of the two tensors that change " + name);
            check_shapes(*model_.tensor(name), *pair.a, *pair.b);
        }
    }

    // Checks that an adapter can change this tensor of the loaded model in llama.cpp.
    void check_changed(const std::string& name) const {
        const Tensor* changed = model_.tensor(name);
        if (changed == nullptr)
            fail("it changes " + name + ", which " + model_.path() + " does not have");
        if (changed->sizes[1] == 1 || !name.ends_with(".weight"))
            fail("it changes " + name + ", which is not a matrix");
        // llama.cpp would also apply the change of the embeddings to the output.
        if (name == kEmbeddings && model_.tensor("output.weight") == nullptr)
            fail("it changes " + name + ", which is also the output of " + model_.path());
        if (const int layer = layer_of(name); layer >= static_cast<int>(n_layers_))
            fail("it changes layer " + std::to_string(layer) +
                 ", a layer of multi-token prediction, which is loaded only for the draft mtp");
    }

    // Embeddings are rows, not products, so A is transposed for them.
    void check_shapes(const Tensor& changed, const Tensor& a, const Tensor& b) const {
        const bool takes_rows = changed.name.ends_with(kEmbeddings);
        const std::int64_t n_in = takes_rows ? a.sizes[1] : a.sizes[0];
        const std::int64_t rank = takes_rows ? a.sizes[0] : a.sizes[1];
        const bool fits = rank > 0 && n_in == changed.sizes[takes_rows ? 1 : 0] &&
                          rank == b.sizes[0] && b.sizes[1] == changed.sizes[takes_rows ? 0 : 1] &&
                          a.sizes[2] == changed.sizes[2] && b.sizes[2] == changed.sizes[2] &&
                          a.sizes[3] == 1 && b.sizes[3] == 1 && changed.sizes[3] == 1;
        if (!fits) fail("its change of " + changed.name + " has another shape than that");
    }

    const GgufReader& model_;
    std::size_t n_layers_;
};

// Hash of all bytes.
std::uint64_t fingerprint(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> block(1 << 20);
    std::uint64_t hash = kFnvBasis;
    while (file) {
        file.read(block.data(), static_cast<std::streamsize>(block.size()));
        hash = fnv1a(std::string_view(block.data(), file.gcount()), hash);
    }
    return hash;
}

void check(const std::vector<LoraAdapter>& adapters) {
    if (adapters.size() > kMostAdapters)
        throw InvalidArgument("A model may have " + std::to_string(kMostAdapters) +
                              " LoRA adapters at most, not " + std::to_string(adapters.size()) +
                              ".");
    for (auto one = adapters.begin(); one != adapters.end(); ++one) {
        if (!std::isfinite(one->scale))
            throw InvalidArgument("The scale of the LoRA adapter " + one->path +
                                  " is not a finite number.");
        if (std::ranges::count(adapters.begin(), one, one->path, &LoraAdapter::path) > 0)
            throw InvalidArgument("The LoRA adapter " + one->path +
                                  " is given twice; give it once, with one scale.");
    }
}

}  // namespace

std::string add_adapters(const ModelOptions& options, bool with_mtp, Header& header) {
    check(options.lora);
    std::string key;
    if (options.lora.empty()) return key;
    const GgufReader model(options.path);
    const std::size_t n_layers = with_mtp ? header.weights.layers.size() : header.layers.size();
    for (const LoraAdapter& adapter : options.lora) {
        const AdapterReader reader(adapter.path, model, n_layers);
        reader.check();
        reader.add_to(header.weights);
        char scale[32];
        std::snprintf(scale, sizeof(scale), "%.9g", static_cast<double>(adapter.scale));
        key += ", adapter " + std::to_string(fingerprint(adapter.path)) + " times " + scale;
    }
    return key;
}

}  // namespace specllama
