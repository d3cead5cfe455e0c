#include "gguf/gguf_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "llama.h"
#include "llama/backend.h"
#include "specllama/error.h"

namespace specllama {

namespace fs = std::filesystem;

namespace {

constexpr int kMostParts = 65535;  // llama.cpp counts them in 16 bits

}  // namespace

GgufReader::GgufReader(const std::string& path, std::string as)
    : path_(path), files_{path}, as_(std::move(as)) {
    check_path();
    const ErrorLog errors;
    gguf_.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (!gguf_) fail("its header is damaged or cut short (" + errors.first() + ")");
    read_tensors();
    read_other_parts();
}

void GgufReader::read_tensors() {
    const std::uint64_t data = gguf_get_data_offset(gguf_.get());
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf_.get()); ++i) {
        Tensor tensor{.name = gguf_get_tensor_name(gguf_.get(), i),
                      .type = gguf_get_tensor_type(gguf_.get(), i),
                      .bytes = gguf_get_tensor_size(gguf_.get(), i)};
        std::copy_n(gguf_get_tensor_ne(gguf_.get(), i), tensor.sizes.size(), tensor.sizes.begin());
        const std::uint64_t offset = gguf_get_tensor_offset(gguf_.get(), i);
        if (data > size_ || offset > size_ - data || tensor.bytes > size_ - data - offset)
            fail("it is cut short: tensor " + tensor.name + " would end at byte " +
                 std::to_string(data + offset + tensor.bytes) + ", the file has " +
                 std::to_string(size_) + "; download it again");
        by_name_.emplace(tensor.name, tensors_.size());
        tensors_.push_back(std::move(tensor));
    }
}

// The names of the parts are those that llama.cpp expects.
void GgufReader::read_other_parts() {
    const std::int64_t n_parts = number("split.count").value_or(1);
    if (n_parts < 2 || number("split.no").value_or(0) != 0) return;
    const auto n = static_cast<int>(std::min<std::int64_t>(n_parts, kMostParts));
    std::array<char, 4096> name{};
    if (llama_split_prefix(name.data(), name.size(), path_.c_str(), 0, n) <= 0)
        fail("it is the first of " + std::to_string(n_parts) +
             " parts of a model, but its name does not show that; restore the original names of "
             "the parts");
    const std::string prefix = name.data();
    for (int i = 1; i < n; ++i) {
        llama_split_path(name.data(), name.size(), prefix.c_str(), i, n);
        if (std::error_code error; !fs::exists(name.data(), error))
            fail("its part " + std::to_string(i + 1) + " of " + std::to_string(n) + ", " +
                 name.data() + ", is missing");
        GgufReader part(name.data());
        files_.emplace_back(name.data());
        for (Tensor& tensor : part.tensors_) {
            by_name_.emplace(tensor.name, tensors_.size());
            tensors_.push_back(std::move(tensor));
        }
    }
}

const GgufReader::Tensor* GgufReader::tensor(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void GgufReader::check_type(const Tensor& tensor, std::span<const ggml_type> types) const {
    if (std::ranges::find(types, tensor.type) != types.end()) return;
    std::string names;
    for (const ggml_type type : types) {
        if (!names.empty()) names += type == types.back() ? " or " : ", ";
        names += ggml_type_name(type);
    }
    fail("its tensor " + tensor.name + " is of type " + ggml_type_name(tensor.type) + ", not " +
         names);
}

// Texts from a file may contain anything, also line ends.
void GgufReader::fail(const std::string& what) const {
    std::string line = what;
    std::ranges::replace_if(line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    throw ModelError("Cannot use " + path_ + " as " + as_ + ": " + line + ".");
}

void GgufReader::check_path() {
    if (path_.empty()) throw ModelError("The model path is empty; give the path of a GGUF file.");
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (status.type() == fs::file_type::not_found)
        throw ModelError("There is no file " + path_ + "; give the path of a GGUF file.");
    if (error) fail(error.message());
    if (fs::is_directory(status)) fail("it is a directory; give the path of a GGUF file");
    if (!fs::is_regular_file(status)) fail("it is not a regular file");
    std::ifstream stream(path_, std::ios::binary);
    if (!stream) fail("it cannot be read; check its permissions");
    size_ = fs::file_size(path_, error);
    if (error) fail("its size is unknown");
    if (size_ == 0) fail("it is empty");
    char magic[4] = {};
    stream.read(magic, sizeof(magic));
    if (std::memcmp(magic, "GGUF", sizeof(magic)) != 0)
        fail("it is not a GGUF file (it does not begin with \"GGUF\")");
}

std::int64_t GgufReader::find(const std::string& key) const {
    return gguf_find_key(gguf_.get(), key.c_str());
}

bool GgufReader::has(const std::string& key) const { return find(key) >= 0; }

std::optional<std::int64_t> GgufReader::number(const std::string& key) const {
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

std::optional<float> GgufReader::real(const std::string& key) const {
    const std::int64_t id = find(key);
    if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_FLOAT32) return {};
    return gguf_get_val_f32(gguf_.get(), id);
}

std::optional<bool> GgufReader::boolean(const std::string& key) const {
    const std::int64_t id = find(key);
    if (id < 0 || gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_BOOL) return {};
    return gguf_get_val_bool(gguf_.get(), id);
}

std::optional<std::string> GgufReader::text(const std::string& key) const {
    const std::int64_t id = find(key);
    if (id < 0) return {};
    if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_STRING)
        fail("its " + key + " is not a string");
    return gguf_get_val_str(gguf_.get(), id);
}

std::optional<std::size_t> GgufReader::array(const std::string& key,
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

std::vector<std::int64_t> GgufReader::numbers(const std::string& key) const {
    if (number(key)) return {};
    const std::size_t n =
        array(key, {GGUF_TYPE_INT32, GGUF_TYPE_UINT32, GGUF_TYPE_BOOL}).value_or(0);
    if (n == 0) return {};
    const void* data = gguf_get_arr_data(gguf_.get(), find(key));
    if (gguf_get_arr_type(gguf_.get(), find(key)) == GGUF_TYPE_BOOL) {
        const auto* bytes = static_cast<const std::uint8_t*>(data);
        return {bytes, bytes + n};
    }
    const auto* integers = static_cast<const std::int32_t*>(data);
    return {integers, integers + n};
}

std::vector<std::int64_t> GgufReader::integers(const Tensor& tensor) const {
    std::vector<std::int64_t> numbers(tensor.bytes / sizeof(std::int64_t));
    const std::int64_t index = gguf_find_tensor(gguf_.get(), tensor.name.c_str());
    if (index < 0) fail("its tensor " + tensor.name + " is in another part");
    std::ifstream stream(path_, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(gguf_get_data_offset(gguf_.get()) +
                                             gguf_get_tensor_offset(gguf_.get(), index)));
    stream.read(reinterpret_cast<char*>(numbers.data()),
                static_cast<std::streamsize>(numbers.size() * sizeof(std::int64_t)));
    if (!stream) fail("it cannot be read to its end");
    return numbers;
}

std::string GgufReader::text_at(const std::string& key, std::size_t index) const {
    return gguf_get_arr_str(gguf_.get(), find(key), index);
}

}  // namespace specllama
