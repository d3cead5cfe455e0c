#include "gguf/architecture/attention_layers.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gguf/architecture/architectures.h"

namespace specllama {

namespace {

class Reader {
 public:
    explicit Reader(const GgufReader& file)
        : file_(file),
          architecture_(*file.text("general.architecture")),
          prefix_(architecture_ + "."),
          n_layers_(static_cast<int>(number("block_count") - number("nextn_predict_layers"))),
          heads_(each("attention.head_count")),
          heads_kv_(file.has(prefix_ + "attention.head_count_kv") ? each("attention.head_count_kv")
                                                                  : heads_),
          sliding_(file.numbers(prefix_ + "attention.sliding_window_pattern")),
          pattern_(architecture(architecture_).windows) {}

    int n_layers() const { return n_layers_; }
    // Layers of multi-token prediction for which llama.cpp reserves memory.
    int n_predictions() const {
        return architecture_ == "bailingmoe3" ? static_cast<int>(number("nextn_predict_layers"))
                                              : 0;
    }

    int window() const {
        // llama.cpp ignores the windows that these files state.
        if (architecture_ == "phi3" || (architecture_ == "exaone4" && n_layers_ != 64)) return 0;
        const auto stated = optional("attention.sliding_window");
        // For these, a stated length only means that there are windows.
        if (architecture_ == "llama4") return stated == 0 ? 0 : 8192;
        if (architecture_ == "smallthinker") return stated.value_or(0) == 0 ? 0 : 4096;
        return static_cast<int>(stated.value_or(pattern_.length));
    }

    bool slides(int layer) const {
        if (window() == 0) return false;
        if (!sliding_.empty()) return layer < std::ssize(sliding_) && sliding_[layer] != 0;
        if (architecture_ == "lfm2" || architecture_ == "deepseek4") return true;
        if (pattern_.period == 0) return false;
        const auto period = static_cast<int>(
            optional("attention.sliding_window_pattern").value_or(pattern_.period));
        return period == 0 || layer % period != (pattern_.whole_first ? 0 : period - 1);
    }

    // The numbers that an attention layer keeps of a token. Multi-head latent attention keeps no
    // values in addition to the keys. An indexer, which chooses the tokens to attend to, has its
    // own keys.
    double numbers(int layer) const {
        // The last layers of these models read the memory of earlier layers.
        const std::int64_t n_own =
            architecture_ == "gemma3n" ? 20 : n_layers_ - number("attention.shared_kv_layers");
        if (layer >= n_own && layer < n_layers_) return 0;
        const std::int64_t n_heads = std::max<std::int64_t>(at(heads_, 0), 1);
        const std::int64_t usual = number("embedding_length") / n_heads;
        const auto length = [&](const std::string& key) {
            const std::int64_t n = optional(key).value_or(usual);
            return static_cast<double>(slides(layer) ? optional(key + "_swa").value_or(n) : n);
        };
        double kept = length("attention.key_length");
        if (number("attention.key_length_mla") == 0) kept += length("attention.value_length");
        return static_cast<double>(at(heads_kv_, layer)) * kept +
               static_cast<double>(number("attention.indexer.key_length"));
    }

 private:
    std::optional<std::int64_t> optional(const std::string& key) const {
        return file_.number(prefix_ + key);
    }
    std::int64_t number(const std::string& key) const { return optional(key).value_or(0); }
    // A number for each layer, or one for all.
    std::vector<std::int64_t> each(const std::string& key) const {
        if (const auto one = optional(key)) return {*one};
        return file_.numbers(prefix_ + key);
    }
    static std::int64_t at(const std::vector<std::int64_t>& each, int layer) {
        if (each.empty()) return 0;
        return each[std::min<std::size_t>(layer, each.size() - 1)];
    }

    const GgufReader& file_;
    std::string architecture_;
    std::string prefix_;
    int n_layers_;
    std::vector<std::int64_t> heads_;
    std::vector<std::int64_t> heads_kv_;
    // [layer]: 0: attends to the whole text, as layers beyond the end do; empty: see pattern_.
    std::vector<std::int64_t> sliding_;
    Architecture::Windows pattern_;
};

}  // namespace

AttentionLayers::AttentionLayers(const GgufReader& file, const RecurrentLayers& recurrent) {
    const Reader reader(file);
    window_ = reader.window();
    for (int layer = 0; layer < reader.n_layers(); ++layer) {
        Kept& kept = kept_.emplace_back();
        if (recurrent.is_without_attention("blk." + std::to_string(layer))) continue;
        (reader.slides(layer) ? kept.windows : kept.whole) = reader.numbers(layer);
    }
    for (int i = 0; i < reader.n_predictions() && !kept_.empty(); ++i)
        kept_.back().whole += reader.numbers(reader.n_layers() + i);
}

}  // namespace specllama
