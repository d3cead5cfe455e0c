#include "llama/gguf_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "ggml.h"
#include "gguf.h"
#include "llama/backend.h"
#include "specllama/error.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

struct GgufDeleter {
    void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};

// Architectures that turn text into vectors, or need an encoder pass first.
constexpr std::array kEncoders = {"bert",
                                  "modern-bert",
                                  "nomic-bert",
                                  "nomic-bert-moe",
                                  "neo-bert",
                                  "jina-bert-v2",
                                  "jina-bert-v3",
                                  "eurobert",
                                  "gemma-embedding",
                                  "llama-embed",
                                  "t5",
                                  "t5encoder",
                                  "wavtokenizer-dec",
                                  "clip"};

class File {
 public:
    explicit File(const std::string& path) : path_(path) {
        check_path();
        const ErrorLog errors;
        gguf_.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
        if (!gguf_) fail("its header is damaged or cut short (" + errors.first() + ")");
    }

    void check() const {
        check_split();
        check_tensors();
        check_architecture();
        check_tokenizer();
    }

 private:
    [[noreturn]] void fail(const std::string& what) const {
        throw ModelError("Cannot use " + path_ + " as a model: " + what + ".");
    }

    void check_path() {
        if (path_.empty())
            throw ModelError("The model path is empty; give the path of a GGUF file.");
        std::error_code error;
        const fs::file_status status = fs::status(path_, error);
        if (!fs::exists(status))
            throw ModelError("There is no file " + path_ + "; give the path of a GGUF file.");
        if (fs::is_directory(status)) fail("it is a directory; give the path of a GGUF file");
        std::ifstream stream(path_, std::ios::binary);
        if (!stream) fail("it cannot be read; check its permissions");
        size_ = fs::file_size(path_, error);
        if (error) fail("it is not a regular file");
        if (size_ == 0) fail("it is empty");
        char magic[4] = {};
        stream.read(magic, sizeof(magic));
        if (std::memcmp(magic, "GGUF", sizeof(magic)) != 0)
            fail("it is not a GGUF file (it does not begin with \"GGUF\")");
    }

    // A later part of a split model has neither architecture nor tokenizer.
    void check_split() const {
        if (const auto part = number("split.no"); part && *part != 0)
            fail("it is part " + std::to_string(*part + 1) +
                 " of a split model; give the path of the first part");
    }

    void check_tensors() const {
        const std::int64_t n = gguf_get_n_tensors(gguf_.get());
        if (n == 0) fail("it holds a vocabulary but no weights");
        const std::uint64_t data = gguf_get_data_offset(gguf_.get());
        for (std::int64_t i = 0; i < n; ++i) {
            const std::uint64_t offset = gguf_get_tensor_offset(gguf_.get(), i);
            const std::uint64_t bytes = gguf_get_tensor_size(gguf_.get(), i);
            if (data > size_ || offset > size_ - data || bytes > size_ - data - offset)
                fail("it is cut short: tensor " +
                     std::string(gguf_get_tensor_name(gguf_.get(), i)) + " would end at byte " +
                     std::to_string(data + offset + bytes) + ", the file has " +
                     std::to_string(size_) + "; download it again");
        }
    }

    void check_architecture() const {
        const auto architecture = text("general.architecture");
        if (!architecture) fail("it does not name its architecture");
        for (const char* encoder : kEncoders)
            if (*architecture == encoder)
                fail("its architecture, " + *architecture +
                     ", does not generate text token by token");
        const std::string prefix = *architecture + ".";
        if (const auto causal = boolean(prefix + "attention.causal"); causal && !*causal)
            fail("it is an embedding model (its attention is not causal)");
        for (const char* name : {"block_count", "embedding_length", "context_length"}) {
            const auto value = number(prefix + name);
            if (!value) fail("it does not say its " + prefix + name);
            if (*value < 1 || *value > INT32_MAX)
                fail("its " + prefix + name + " is " + std::to_string(*value));
        }
        // Zero heads is what recurrent models say. Arrays give a number per layer.
        const auto heads = number(prefix + "attention.head_count");
        const auto heads_kv = number(prefix + "attention.head_count_kv");
        if (heads && (*heads < 0 || *heads > 65536))
            fail("its " + prefix + "attention.head_count is " + std::to_string(*heads));
        if (heads && *heads > 0 && heads_kv && *heads_kv > 0 && *heads % *heads_kv != 0)
            fail("its " + std::to_string(*heads) + " attention heads are not a multiple of its " +
                 std::to_string(*heads_kv) + " key-value heads");
    }

    void check_tokenizer() const {
        const auto model = text("tokenizer.ggml.model");
        if (!model || *model == "none" || *model == "no_vocab")
            fail("it has no tokenizer, so it cannot read a prompt");
        const std::size_t n = array("tokenizer.ggml.tokens", {GGUF_TYPE_STRING}).value_or(0);
        if (n == 0) fail("it has no tokens in tokenizer.ggml.tokens");
        check_unique_tokens(n);
        check_parallel("tokenizer.ggml.scores", {GGUF_TYPE_FLOAT32, GGUF_TYPE_INT32}, n);
        check_parallel("tokenizer.ggml.token_type", {GGUF_TYPE_INT32}, n);
        array("tokenizer.ggml.merges", {GGUF_TYPE_STRING});
        for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "seperator", "padding",
                                 "cls", "mask", "fim_pre", "fim_suf", "fim_mid"}) {
            const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
            const auto id = number(key);
            // llama.cpp takes -1, also as uint32, for "none".
            if (id && *id != -1 && *id != UINT32_MAX &&
                (*id < 0 || *id >= static_cast<std::int64_t>(n)))
                fail("its " + key + " is " + std::to_string(*id) + ", but it has " +
                     std::to_string(n) + " tokens");
        }
    }

    // llama.cpp asserts that no two tokens have one text.
    void check_unique_tokens(std::size_t n) const {
        const std::int64_t id = find("tokenizer.ggml.tokens");
        std::unordered_set<std::string_view> seen;
        seen.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {
            const std::string_view token = gguf_get_arr_str(gguf_.get(), id, i);
            if (!token.empty() && !seen.insert(token).second)
                fail("its token " + std::to_string(i) + " has the same text as an earlier one");
        }
    }

    void check_parallel(const char* key, std::initializer_list<gguf_type> types,
                        std::size_t n_tokens) const {
        const auto n = array(key, types);
        if (n && *n < n_tokens)
            fail("it has " + std::to_string(n_tokens) + " tokens but only " + std::to_string(*n) +
                 " entries in " + key);
    }

    std::int64_t find(const std::string& key) const {
        return gguf_find_key(gguf_.get(), key.c_str());
    }

    // The value of an integer key; none when it is absent or no scalar integer.
    std::optional<std::int64_t> number(const std::string& key) const {
        const std::int64_t id = find(key);
        if (id < 0) return {};
        switch (gguf_get_kv_type(gguf_.get(), id)) {
            case GGUF_TYPE_UINT8:
                return gguf_get_val_u8(gguf_.get(), id);
            case GGUF_TYPE_INT8:
                return gguf_get_val_i8(gguf_.get(), id);
            case GGUF_TYPE_UINT16:
                return gguf_get_val_u16(gguf_.get(), id);
            case GGUF_TYPE_INT16:
                return gguf_get_val_i16(gguf_.get(), id);
            case GGUF_TYPE_UINT32:
                return gguf_get_val_u32(gguf_.get(), id);
            case GGUF_TYPE_INT32:
                return gguf_get_val_i32(gguf_.get(), id);
            case GGUF_TYPE_UINT64:
                return static_cast<std::int64_t>(gguf_get_val_u64(gguf_.get(), id));
            case GGUF_TYPE_INT64:
                return gguf_get_val_i64(gguf_.get(), id);
            default:
                return {};
        }
    }

    std::optional<bool> boolean(const std::string& key) const {
        const std::int64_t id = find(key);
        if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_BOOL) return {};
        return gguf_get_val_bool(gguf_.get(), id);
    }

    std::optional<std::string> text(const std::string& key) const {
        const std::int64_t id = find(key);
        if (id < 0) return {};
        if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_STRING)
            fail("its " + key + " is no text");
        return gguf_get_val_str(gguf_.get(), id);
    }

    // The length of an array; its elements must be of one of `types`.
    std::optional<std::size_t> array(const std::string& key,
                                     std::initializer_list<gguf_type> types) const {
        const std::int64_t id = find(key);
        if (id < 0) return {};
        if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_ARRAY)
            fail("its " + key + " is not an array");
        const gguf_type found = gguf_get_arr_type(gguf_.get(), id);
        if (std::ranges::find(types, found) == types.end())
            fail("its " + key + " is an array of " + gguf_type_name(found));
        return gguf_get_arr_n(gguf_.get(), id);
    }

    std::string path_;
    std::uint64_t size_ = 0;
    std::unique_ptr<gguf_context, GgufDeleter> gguf_;
};

}  // namespace

void check_gguf(const std::string& path) { File(path).check(); }

}  // namespace specllama
