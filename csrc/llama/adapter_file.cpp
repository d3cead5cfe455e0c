#include "llama/adapter_file.h"

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "fnv.h"
#include "llama/backend.h"
#include "llama/gguf_reader.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::string_view kA = ".lora_a";
constexpr std::string_view kB = ".lora_b";
constexpr const char* kEmbeddings = "token_embd.weight";

class Reader : private GgufReader {
 public:
    using GgufReader::GgufReader;

    std::uint64_t check(const GgufReader& model) const {
        if (text("general.type") != "adapter" || text("adapter.type") != "lora")
            refuse("it is no LoRA adapter");
        const std::string architecture = text("general.architecture").value_or("");
        const std::string other = *model.text("general.architecture");
        if (architecture != other)
            refuse("it is for models of the architecture " + architecture + ", not " + other);
        if (has("adapter.alora.invocation_tokens"))
            refuse("it works only behind certain tokens (aLoRA), which is not supported");
        if (has("adapter.lora.alpha") && !real("adapter.lora.alpha"))
            refuse("its adapter.lora.alpha is no 32-bit float");
        check_pairs(model);
        std::uint64_t bytes = 0;
        for (const Tensor& tensor : tensors()) bytes += tensor.bytes;
        return bytes;
    }

 private:
    struct Pair {
        const Tensor* a = nullptr;
        const Tensor* b = nullptr;
    };

    [[noreturn]] void refuse(const std::string& what) const { fail(what, "a LoRA adapter"); }

    // What an adapter adds to a product with a matrix of n_in x n_out is B (A x), with A of n_in x
    // rank and B of rank x n_out, once for each expert.
    void check_pairs(const GgufReader& model) const {
        std::map<std::string, Pair> pairs;
        bool has_norms = false;
        for (const Tensor& tensor : tensors()) {
            if (tensor.name.ends_with("_norm.weight")) {
                has_norms = true;
                continue;
            }
            check_type(tensor);
            const std::string_view name = tensor.name;
            if (name.ends_with(kA))
                pairs[std::string(name.substr(0, name.size() - kA.size()))].a = &tensor;
            else if (name.ends_with(kB))
                pairs[std::string(name.substr(0, name.size() - kB.size()))].b = &tensor;
            else
                refuse("its tensor " + tensor.name + " is no part of a LoRA adapter");
        }
        if (pairs.empty()) refuse("it changes nothing");
        if (has_norms)
            warn("The adapter " + path() + " has norms, too; llama.cpp leaves these out.");
        for (const auto& [name, pair] : pairs) {
            const Tensor* changed = model.tensor(name);
            if (changed == nullptr)
                refuse("it changes " + name + ", which " + model.path() + " does not have");
            if (pair.a == nullptr || pair.b == nullptr)
                refuse("only one half of its change of " + name + " is there");
            check_shapes(*changed, *pair.a, *pair.b);
        }
    }

    // Of the token embeddings rows are taken, not products, so A lies the other way round.
    void check_shapes(const Tensor& changed, const Tensor& a, const Tensor& b) const {
        const bool takes_rows = changed.name == kEmbeddings;
        const std::int64_t n_in = takes_rows ? a.sizes[1] : a.sizes[0];
        const std::int64_t rank = takes_rows ? a.sizes[0] : a.sizes[1];
        const bool fits = n_in == changed.sizes[takes_rows ? 1 : 0] && rank == b.sizes[0] &&
                          b.sizes[1] == changed.sizes[takes_rows ? 0 : 1] &&
                          a.sizes[2] == changed.sizes[2] && b.sizes[2] == changed.sizes[2] &&
                          a.sizes[3] == 1 && b.sizes[3] == 1 && changed.sizes[3] == 1;
        if (!fits) refuse("its change of " + changed.name + " has another shape than that");
    }

    // Others would have to be unpacked in places where llama.cpp has no code for that.
    void check_type(const Tensor& tensor) const {
        constexpr std::array kTypes = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                       GGML_TYPE_Q8_0};
        for (const ggml_type type : kTypes)
            if (tensor.type == type) return;
        refuse("its tensor " + tensor.name + " is of type " + ggml_type_name(tensor.type) +
               ", not f32, f16, bf16 or q8_0");
    }
};

// Of all bytes.
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

}  // namespace

AdapterFile check_adapter(const LoraAdapter& adapter, const std::string& model) {
    if (!std::isfinite(adapter.scale))
        throw InvalidArgument("The scale of the adapter " + adapter.path + " is no number.");
    const std::uint64_t bytes = Reader(adapter.path).check(GgufReader(model));
    return {bytes, fingerprint(adapter.path)};
}

}  // namespace specllama
