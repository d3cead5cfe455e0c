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

// The header of a GGUF file, and its keys by type. What throws, throws ModelError with one sentence
// for the user.
class GgufReader {
 public:
    // Throws unless there is such a file, with a header that can be read.
    explicit GgufReader(const std::string& path);

    [[noreturn]] void fail(const std::string& what) const;

    const gguf_context* gguf() const { return gguf_.get(); }
    // Of the file, in bytes.
    std::uint64_t size() const { return size_; }

    // Whether there is the key.
    bool has(const std::string& key) const;
    // None when the key is absent or no scalar integer; and so on.
    std::optional<std::int64_t> number(const std::string& key) const;
    std::optional<float> real(const std::string& key) const;  // of 32 bits
    std::optional<bool> boolean(const std::string& key) const;
    // None when the key is absent. Throws when it is no text.
    std::optional<std::string> text(const std::string& key) const;
    // The length of an array. Throws unless its elements are of one of `types`.
    std::optional<std::size_t> array(const std::string& key,
                                     std::initializer_list<gguf_type> types) const;
    // The numbers of an array of 32-bit integers; none when the key is absent. Throws when it is
    // none.
    std::vector<std::int64_t> numbers(const std::string& key) const;
    // Those of a tensor of 64-bit integers, by its index, which must lie within the file.
    std::vector<std::int64_t> tensor(std::int64_t index) const;
    // One element of an array of texts.
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
