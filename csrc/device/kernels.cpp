#include "device/kernels.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "device/amx.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "llama/backend.h"
#include "specllama/device.h"

namespace specllama {

namespace {

Kernel kernel_of(ggml_backend_buffer_type_t type) {
    return is_amx(type) ? Kernel::amx : Kernel::repacked;
}

// Whether llama.cpp would multiply with this matrix in a buffer of this type. llama.cpp makes the
// same test when it loads a matrix.
bool supports(ggml_backend_buffer_type_t type, const Matrix& matrix) {
    constexpr std::int64_t kTokens = 512;
    const ggml_context_ptr context(ggml_init(
        {.mem_size = ggml_tensor_overhead() * 8, .mem_buffer = nullptr, .no_alloc = true}));
    ggml_tensor* weight =
        ggml_new_tensor_3d(context.get(), matrix.type, matrix.n_in, matrix.n_out, matrix.n_slices);
    ggml_tensor* product = nullptr;
    if (matrix.of_experts) {
        ggml_tensor* in = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, matrix.n_in, 1, kTokens);
        ggml_tensor* experts = ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 1, kTokens);
        product = ggml_mul_mat_id(context.get(), weight, in, experts);
    } else {
        ggml_tensor* in =
            ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, matrix.n_in, kTokens, matrix.n_slices);
        product = ggml_mul_mat(context.get(), weight, in);
    }
    const ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, 0));
    weight->buffer = buffer.get();
    return ggml_backend_dev_supports_op(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU),
                                        product);
}

bool is_right(Kernel kernel, const Matrix& matrix) {
    if (kernel != Kernel::amx) return true;
    return !matrix.recurrent && matrix.n_slices == 1 && amx_works();
}

}  // namespace

Widths batch_invariant_widths(Kernel kernel, ggml_type type) {
    // Each result is the sum of one loop, in the same order at any width.
    if (kernel == Kernel::amx) return {1, kAnyWidth};
    const bool plain = kernel == Kernel::plain;
    switch (type) {
        case GGML_TYPE_Q8_0:
        case GGML_TYPE_Q4_0:
            return {1, kAnyWidth};
        case GGML_TYPE_Q4_1:
        case GGML_TYPE_Q5_0:
        case GGML_TYPE_Q5_1:
            return plain ? Widths{1, kAnyWidth} : Widths{};
        case GGML_TYPE_Q2_K:
        case GGML_TYPE_Q3_K:
        case GGML_TYPE_Q4_K:
        case GGML_TYPE_Q5_K:
        case GGML_TYPE_Q6_K:
        case GGML_TYPE_IQ4_XS:
            // From 8 tokens on llama.cpp uses another kernel (ggml-cpu/tiled). Repacked kernels
            // multiply four tokens together, and the remaining ones one by one in another order.
            return plain ? Widths{1, 7} : Widths{};
        case GGML_TYPE_IQ4_NL:
            return plain ? Widths{2, kAnyWidth} : Widths{1, kAnyWidth};
        case GGML_TYPE_F32:
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
            return plain ? Widths{2, kAnyWidth} : Widths{};
        default:
            return {};
    }
}

Widths batch_invariant_widths(const Header& header, Kernels wanted) {
    Widths all{1, kAnyWidth};
    for (const Matrix& matrix : header.matrices) {
        const Widths one = batch_invariant_widths(kernel_for(matrix, wanted), matrix.type);
        all = {std::max(all.least, one.least), std::min(all.most, one.most)};
    }
    return all;
}

ggml_backend_buffer_type_t buffer_type(Kernel kernel, const Matrix& matrix) {
    for (ggml_backend_buffer_type_t type : extra_buffer_types())
        if (kernel_of(type) == kernel && supports(type, matrix)) return type;
    return nullptr;
}

Kernel default_kernel(const Matrix& matrix) {
    ensure_backend();
    for (ggml_backend_buffer_type_t type : extra_buffer_types())
        if (supports(type, matrix)) return kernel_of(type);
    return Kernel::plain;
}

Kernel kernel_for(const Matrix& matrix, Kernels wanted) {
    const Kernel first = default_kernel(matrix);
    for (ggml_backend_buffer_type_t type : extra_buffer_types()) {
        const Kernel kernel = kernel_of(type);
        const bool fits = wanted == Kernels::fastest ||
                          batch_invariant_widths(kernel, matrix.type).most == kAnyWidth;
        if (!fits || !is_right(kernel, matrix) || !supports(type, matrix)) continue;
        // A tied token table is also used for lookups. llama.cpp keeps a second copy for these, but
        // only if it chooses the kernel itself.
        const bool is_table = matrix.name == "token_embd.weight";
        return is_table && kernel != first ? Kernel::plain : kernel;
    }
    return Kernel::plain;
}

std::string cpu_kernels() {
    ensure_backend();
    std::string text;
    for (ggml_backend_buffer_type_t type : extra_buffer_types()) {
        if (kernel_of(type) == Kernel::amx)
            text += amx_works() ? "AMX, " : "AMX (not used: it does not work here), ";
        else
            text += "repacked, ";
    }
    return text + "plain";
}

std::string describe_kernels(const Header& header, Kernels wanted) {
    std::array<double, 3> bytes{};
    double all = 0;
    for (const Matrix& matrix : header.matrices) {
        const auto size = static_cast<double>(matrix.n_bytes());
        bytes[static_cast<std::size_t>(kernel_for(matrix, wanted))] += size;
        all += size;
    }
    std::string text;
    for (const auto& [kernel, name] : {std::pair{Kernel::amx, "AMX"},
                                       {Kernel::repacked, "repacked"},
                                       {Kernel::plain, "plain"}}) {
        const double fraction = all > 0 ? bytes[static_cast<std::size_t>(kernel)] / all : 0;
        if (fraction == 0) continue;
        char part[32];
        std::snprintf(part, sizeof(part), "%s %.0f %%", name, 100 * fraction);
        text += (text.empty() ? "" : ", ") + std::string(part);
    }
    return text;
}

}  // namespace specllama
