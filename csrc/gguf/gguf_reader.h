#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gguf.h"

namespace specllama {

// Reads the header of a GGUF file: its keys by type, and its tensors. For the first part of a split
// model, reads the tensors of all parts. All errors are ModelErrors with one sentence for the user.
class GgufReader {
 public:
    struct Tensor {
        std::string name;
        ggml_type type = GGML_TYPE_F32;
        std::array<std::int64_t, GGML_MAX_DIMS> sizes{};
        std::uint64_t bytes = 0;
    };

    // Throws unless the file and all its parts exist, their headers can be read, and all tensors
    // are within their files. as: the use of the file, for messages.
    explicit GgufReader(const std::string& path, std::string as = "a model");

    [[noreturn]] void fail(const std::string& what) const;
    const std::string& path() const { return path_; }
    // The paths of the model's files: one, or all parts of a split model.
    const std::vector<std::string>& files() const { return files_; }

    const std::vector<Tensor>& tensors() const { return tensors_; }
    // null: no tensor of this name.
    const Tensor* tensor(const std::string& name) const;
    // Throws unless the tensor has one of the `types`.
    void check_type(const Tensor& tensor, std::span<const ggml_type> types) const;
    // The numbers of a tensor of 64-bit integers. Throws if it is in another part of the model.
    std::vector<std::int64_t> integers(const Tensor& tensor) const;

    // Whether the header has the key.
    bool has(const std::string& key) const;
    // None if the key is missing or has another type than an integer, a 32-bit float, or a boolean.
    std::optional<std::int64_t> number(const std::string& key) const;
    std::optional<float> real(const std::string& key) const;
    std::optional<bool> boolean(const std::string& key) const;
    // None if the key is missing. Throws if it is not a string.
    std::optional<std::string> text(const std::string& key) const;
    // The length of an array; none if the key is missing. Throws if it is not an array, or its
    // elements have none of the `types`.
    std::optional<std::size_t> array(const std::string& key,
                                     std::initializer_list<gguf_type> types) const;
    // The numbers of an array of 32-bit integers or booleans; empty if the key is missing or a
    // single number. Throws if it is anything else.
    std::vector<std::int64_t> numbers(const std::string& key) const;
    // One element of an array of strings; both must exist.
    std::string text_at(const std::string& key, std::size_t index) const;

 private:
    struct Deleter {
        void operator()(gguf_context* gguf) const { gguf_free(gguf); }
    };

    void check_path();
    void read_tensors();
    void read_other_parts();
    std::int64_t find(const std::string& key) const;

    std::string path_;
    std::vector<std::string> files_;
    std::string as_;
    std::uint64_t size_ = 0;  // of the file, in bytes
    std::unique_ptr<gguf_context, Deleter> gguf_;
    std::vector<Tensor> tensors_;
    std::unordered_map<std::string, std::size_t> by_name_;  // [name]: index in tensors_
};

}  // namespace specllama
