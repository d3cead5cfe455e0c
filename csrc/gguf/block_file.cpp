#include "gguf/block_file.h"

#include <cstdint>
#include <optional>

#include "gguf/layer_reader_file.h"

namespace specllama {

namespace {

using Kind = BlockFormat::Kind;

// Rows of a block if the file does not state them: llama.cpp's default.
constexpr std::int64_t kUsualBlock = 16;

class BlockFile : private LayerReaderFile {
 public:
    using LayerReaderFile::LayerReaderFile;

    BlockFormat check(const Header& target) const {
        if (has(key("hyper_connection_count")))
            fail("it is a DSpark draft for deepseek4, which is not supported");
        check_states(target);
        // The states that it reads have its own width.
        if (*number(key("embedding_length")) != target.width)
            fail_width(*number(key("embedding_length")), target);
        check_heads();
        check_vectors();
        check_tokens(target);
        if (shares()) check_shared(target);
        return format(target);
    }

 private:
    // llama.cpp uses the target's tensors, and asserts that they exist.
    void check_shared(const Header& target) const {
        if (GgufReader(target.path).tensor("token_embd.weight") == nullptr)
            fail("it uses the embeddings of " + target.path + ", which has none");
    }

    Kind kind() const {
        const bool has_selector = holds("selector_hidden.weight");
        const bool has_markov = holds("markov_w1.weight");
        if (has_selector && has_markov) fail("it has tensors of both DFlash2 and DSpark");
        return has_selector ? Kind::dflash2 : has_markov ? Kind::dspark : Kind::dflash;
    }

    BlockFormat format(const Header& target) const {
        BlockFormat format{.kind = kind(), .layers = layers(target)};
        if (format.layers.empty()) fail("it does not name layers in " + key("target_layers"));
        format.predicts_from_anchor =
            format.kind == Kind::dspark && boolean(key("sample_from_anchor")).value_or(true);
        format.causal = boolean(key("attention.causal")).value_or(false);
        format.has_confidence = format.kind == Kind::dspark && holds("conf_proj.weight");
        format.n_block = block_size(format);
        format.mask = mask(target);
        if (format.kind == Kind::dflash2) format.top_k = top_k(target);
        return format;
    }

    int block_size(const BlockFormat& format) const {
        // llama.cpp's graphs of the other two kinds read the key.
        if (format.kind != Kind::dflash && !has(key("block_size")))
            fail("its " + key("block_size") + " is missing");
        const std::int64_t n = number(key("block_size")).value_or(kUsualBlock);
        if (n <= format.first_row() || n > INT32_MAX)
            fail("its " + key("block_size") + " is " + std::to_string(n));
        return static_cast<int>(n);
    }

    Token mask(const Header& target) const {
        const auto mask = number("tokenizer.ggml.mask_token_id");
        if (!mask) fail("it names no mask token");
        if (*mask < 0 || *mask >= target.n_vocab)
            fail("its mask token is " + std::to_string(*mask) + ", but the vocabulary has " +
                 std::to_string(target.n_vocab) + " tokens");
        return static_cast<Token>(*mask);
    }

    int top_k(const Header& target) const {
        const std::int64_t n = number(key("selector_top_k")).value_or(0);
        const std::int64_t width = target.width;
        if (n < 1 || n > target.n_vocab || n * (n + 1) > width)
            fail("its " + key("selector_top_k") + " is " + std::to_string(n));
        return static_cast<int>(n);
    }
};

}  // namespace

BlockFormat check_block_drafter(const std::string& path, const Header& target) {
    return BlockFile(path).check(target);
}

}  // namespace specllama
