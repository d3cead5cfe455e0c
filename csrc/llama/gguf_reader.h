#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gguf.h"

namespace specllama {

// Reads the header of a GGUF file, and its keys by type. What it throws is a ModelError with one
// sentence for the user.
class GgufReader {
 public:
    // Throws unless there is such a file and its header can be read.
    explicit GgufReader(const std::string& path);

    [[noreturn]] void fail(const std::string& what) const;

    const gguf_context* gguf() const { return gguf_.get(); }
    // Size of the file, in bytes.
    std::uint64_t size() const { return size_; }

    // Whether the header has the key.
    bool has(const std::string& key) const;
    // None if the key is absent or not of the type: an integer, a 32-bit float, a boolean.
    std::optional<std::int64_t> number(const std::string& key) const;
    std::optional<float> real(const std::string& key) const;
    std::optional<bool> boolean(const std::string& key) const;
    // None if the key is absent. Throws if it is not a text.
    std::optional<std::string> text(const std::string& key) const;
    // The length of an array; none if the key is absent. Throws if it is not an array, or its
    // elements have none of the `types`.
    std::optional<std::size_t> array(const std::string& key,
                                     std::initializer_list<gguf_type> types) const;
    // The numbers of an array of 32-bit integers or booleans; empty if the key is absent or is a
    // number itself. Throws if it is anything else.
    std::vector<std::int64_t> numbers(const std::string& key) const;
    // The numbers of a tensor of 64-bit integers, by its index. Its data must lie within the file.
    std::vector<std::int64_t> tensor(std::int64_t index) const;
    // One element of an array of texts; both must exist.
    std::string text_at(const std::string& key, std::size_t index) const;

 private:
    struct Deleter {
        void operator()(gguf_context* gguf) const { gguf_free(gguf); }
    };

    void check_path();
    std::int64_t find(const std::string& key) const;

    std::string path_;
    std::uint64_t size_ = 0;
    std::unique_ptr<gguf_context, Deleter> gguf_;
};

}  // namespace specllama
