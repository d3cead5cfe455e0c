#include "device/type_speed.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "device/kernels.h"
#include "files/cache_folder.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "llama.h"
#include "llama/backend.h"
#include "specllama/device.h"

namespace specllama {

namespace {

// Seconds per weight of a decode of one token, by type. Types that llama.cpp cannot multiply on a
// CPU, or without memory for the test, are missing.
using TypeSeconds = std::map<ggml_type, double>;

constexpr const char* kKind = "types";

constexpr std::int64_t kSide = 2048;                   // rows and columns of a matrix
constexpr std::size_t kBytes = std::size_t{96} << 20;  // of all matrices: larger than caches
constexpr int kPasses = 5;

// Types to compare with, which have fast kernels on many processors.
constexpr std::array kFastTypes = {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0};
// A notice is given if a type's time per byte, and the decode of the whole model, take at least
// this multiple of the fastest type's.
constexpr double kSlow = 1.25;

// Processor time of the calling thread, on which other programs have little effect.
double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Multiplies one token with many matrices of a type. The matrices are zeros, which take as long as
// other numbers.
class Products {
 public:
    explicit Products(ggml_type type) : backend_(ggml_backend_cpu_init()) {
        ggml_backend_cpu_set_n_threads(backend_.get(), 1);  // this one
        const Matrix matrix{
            .name = "blk.0.ffn_up.weight", .type = type, .n_in = kSide, .n_out = kSide};
        const auto n = std::max<std::size_t>(kBytes / matrix.n_bytes(), 1);
        n_weights_ = static_cast<double>(n * kSide * kSide);
        weights_ = context(n);
        for (std::size_t i = 0; i < n; ++i) ggml_new_tensor_2d(weights_.get(), type, kSide, kSide);
        ggml_backend_buffer_type_t place =
            buffer_type(kernel_for(matrix, Kernels::fastest), matrix);
        if (place == nullptr) place = ggml_backend_cpu_buffer_type();
        weights_buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(weights_.get(), place));

        results_ = context(n + 1);
        graph_ = ggml_new_graph(results_.get());
        ggml_tensor* token = ggml_new_tensor_1d(results_.get(), GGML_TYPE_F32, kSide);
        for (ggml_tensor* one = ggml_get_first_tensor(weights_.get()); one != nullptr;
             one = ggml_get_next_tensor(weights_.get(), one))
            ggml_build_forward_expand(graph_, ggml_mul_mat(results_.get(), one, token));
        results_buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
            results_.get(), ggml_backend_cpu_buffer_type()));
        if (!weights_buffer_ || !results_buffer_) return;

        const std::vector<std::byte> zeros(matrix.n_bytes());
        for (ggml_tensor* one = ggml_get_first_tensor(weights_.get()); one != nullptr;
             one = ggml_get_next_tensor(weights_.get(), one))
            ggml_backend_tensor_set(one, zeros.data(), 0, zeros.size());
        const std::vector<float> ones(kSide, 1);
        ggml_backend_tensor_set(token, ones.data(), 0, ones.size() * sizeof(float));
        ready_ = true;
    }

    // False: not enough memory.
    bool ready() const { return ready_; }

    // Seconds per weight of one pass.
    double pass() {
        const double begin = thread_seconds();
        ggml_backend_graph_compute(backend_.get(), graph_);
        return (thread_seconds() - begin) / n_weights_;
    }

 private:
    static ggml_context_ptr context(std::size_t n_tensors) {
        return ggml_context_ptr(
            ggml_init({.mem_size = ggml_tensor_overhead() * n_tensors + ggml_graph_overhead(),
                       .mem_buffer = nullptr,
                       .no_alloc = true}));
    }

    ggml_backend_ptr backend_;
    double n_weights_ = 0;
    ggml_context_ptr weights_;
    ggml_context_ptr results_;
    ggml_backend_buffer_ptr weights_buffer_;
    ggml_backend_buffer_ptr results_buffer_;
    ggml_cgraph* graph_ = nullptr;
    bool ready_ = false;
};

std::optional<double> measure(ggml_type type) {
    if (kSide % ggml_blck_size(type) != 0 || ggml_get_type_traits_cpu(type)->vec_dot == nullptr)
        return {};
    Products products(type);
    if (!products.ready()) return {};
    products.pass();
    double least = products.pass();
    for (int i = 1; i < kPasses; ++i) least = std::min(least, products.pass());
    return least;
}

// One line with everything that the times depend on.
std::string key() {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return "1, llama.cpp " + std::string(llama_cpp_version()) + ", " +
           ggml_backend_dev_description(cpu) + ", " + llama_print_system_info() + ", " +
           cpu_kernels();
}

// The file has a line for each type.
TypeSeconds read() {
    TypeSeconds times;
    std::istringstream stream(recall(cache_folder(), kKind, key()));
    std::string name;
    for (double seconds = 0; stream >> name >> seconds;)
        for (int type = 0; type < GGML_TYPE_COUNT; ++type)
            if (seconds > 0 && name == ggml_type_name(static_cast<ggml_type>(type)))
                times[static_cast<ggml_type>(type)] = seconds;
    return times;
}

void write(const TypeSeconds& times) {
    std::ostringstream text;
    for (const auto& [type, seconds] : times)
        text << ggml_type_name(type) << ' ' << seconds << '\n';
    remember(cache_folder(), kKind, key(), text.str());
}

// Weights that a decode of one token uses.
double n_weights(const Header& header, const Matrix& matrix) {
    return static_cast<double>(matrix.n_in * matrix.n_out * matrix.n_slices) *
           (matrix.of_experts ? header.expert_share : 1);
}

double bytes_per_weight(ggml_type type) {
    return static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
}

// The times of a model's types and of `others`.
TypeSeconds time_types(const Header& header, std::span<const ggml_type> others) {
    std::set<ggml_type> types(others.begin(), others.end());
    for (const Matrix& matrix : header.matrices) types.insert(matrix.type);
    ensure_backend();
    TypeSeconds times = read();
    bool is_new = false;
    for (const ggml_type type : types) {
        if (times.contains(type)) continue;
        if (const std::optional<double> seconds = measure(type)) {
            times[type] = *seconds;
            is_new = true;
        }
    }
    if (is_new) write(times);
    return times;
}

// Seconds of a decode of one token; none: a time is unknown. as: type assumed for all matrices.
std::optional<double> decode_seconds(const Header& header, const TypeSeconds& times,
                                     std::optional<ggml_type> as = {}) {
    double seconds = 0;
    for (const Matrix& matrix : header.matrices) {
        const auto time = times.find(as.value_or(matrix.type));
        if (time == times.end()) return {};
        seconds += n_weights(header, matrix) * time->second;
    }
    return seconds;
}

// "1.7"
std::string rounded(double factor) {
    char text[16];
    std::snprintf(text, sizeof(text), "%.1f", factor);
    return text;
}

}  // namespace

std::optional<TypeGain> fastest_type(const Header& header, std::span<const ggml_type> types) {
    const TypeSeconds times = time_types(header, types);
    const std::optional<double> now_takes = decode_seconds(header, times);
    if (!now_takes) return {};
    std::optional<TypeGain> best;
    for (const ggml_type type : types) {
        const std::optional<double> seconds = decode_seconds(header, times, type);
        if (seconds && (!best || *now_takes / *seconds > best->factor))
            best = {.type = type, .factor = *now_takes / *seconds};
    }
    return best;
}

std::string slow_types(const Header& header) {
    if (header.weights.total < kLeastTypedBytes) return "";
    const TypeSeconds times = time_types(header, kFastTypes);
    const std::optional<double> now_takes = decode_seconds(header, times);
    if (!now_takes) return "";
    const auto per_byte = [&](ggml_type type) { return times.at(type) / bytes_per_weight(type); };
    double least = std::numeric_limits<double>::infinity();
    for (const ggml_type type : kFastTypes)
        if (times.contains(type)) least = std::min(least, per_byte(type));

    double all = 0;
    std::map<ggml_type, double> slow;  // by type, the weights
    for (const Matrix& matrix : header.matrices) {
        const double n = n_weights(header, matrix);
        all += n;
        if (per_byte(matrix.type) > kSlow * least) slow[matrix.type] += n;
    }
    std::string faster;
    for (const ggml_type type : kFastTypes) {
        const std::optional<double> seconds = decode_seconds(header, times, type);
        if (!seconds || *now_takes < kSlow * *seconds) continue;
        const std::string name = ggml_type_name(type);
        const std::string factor = rounded(*now_takes / *seconds) + " times";
        faster += faster.empty() ? "a file in " + name + " would decode " + factor + " as fast"
                                 : ", in " + name + " " + factor;
    }
    if (slow.empty() || faster.empty()) return "";
    const auto most =
        std::ranges::max_element(slow, {}, &std::pair<const ggml_type, double>::second);
    const double percent = 100 * most->second / all;
    return "Its " + std::string(ggml_type_name(most->first)) + " matrices (" +
           std::to_string(static_cast<int>(percent)) +
           " % of the weights) have no fast kernels on this processor; " + faster + ".";
}

}  // namespace specllama
