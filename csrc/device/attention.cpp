#include "device/attention.h"

#include <limits>
#include <string>

#include "device/offload.h"
#include "ggml-cpu.h"
#include "llama/kv_type.h"
#include "system/host.h"

namespace specllama {

namespace {

// Vector length of ggml's flash attention (GGML_F16_STEP). The remaining numbers of a head are
// added one by one, which takes several times as long as everything else.
int numbers_at_a_time() {
    if (ggml_cpu_has_avx512() == 0) return 32;
    return has_avx512_fp16() ? 128 : 64;
}

// Other heads have not been measured.
constexpr int kSmallestHead = 64;
constexpr int kLargestHead = 128;

// Maximum number of bytes of the scores. They are reserved for a whole batch at the end of the
// context, but not written before.
constexpr double kMostBytes = 2.0 * (1 << 30);

// Rows of a block of the flash kernel: ggml's GGML_FA_TILE_Q.
constexpr int kBlock = 64;

// With this many memory cells or more, a single row divides them among threads; and the multiple to
// which llama.cpp rounds the cells in use.
constexpr int kSplitCells = 512;
constexpr int kCellsAtOnce = 256;

// Whether ggml computes with keys and values as F16; it casts F32 to F16. Other types are computed
// row by row.
bool is_f16(const ContextOptions& context) {
    const KvTypes types = kv_types(kv_type_name(context));
    const auto counts = [](ggml_type type) {
        return type == GGML_TYPE_F16 || type == GGML_TYPE_F32;
    };
    return counts(types.keys) && counts(types.values);
}

}  // namespace

double attention_scores(const Header& header, int n_batch, double n_seen) {
    return n_seen * n_batch * header.n_heads;
}

bool too_slow_with_flash(const Header& header, const ModelOptions& model,
                         const ContextOptions& context, int n_ctx) {
#if !defined(__x86_64__)
    return false;
#endif
    // With several sequences, flash attention skips cells that a token does not attend to; matrix
    // products cannot.
    return context.flash_attn == Switch::automatic && context.n_seq == 1 &&
           kv_type_name(context) == "f16" && header.head_size >= kSmallestHead &&
           header.head_size <= kLargestHead && header.head_size % numbers_at_a_time() != 0 &&
           !header.has_sliding_window &&
           sizeof(float) * attention_scores(header, context.n_batch, n_ctx) <= kMostBytes &&
           offload_devices(model).empty();
}

int most_rows_together(const ModelOptions& model, const ContextOptions& context) {
    const bool in_blocks =
        context.flash_attn != Switch::off && is_f16(context) && offload_devices(model).empty();
    return in_blocks ? kBlock - 1 : std::numeric_limits<int>::max();
}

Widths attention_widths(const ContextOptions& context, int n_ctx) {
    if (context.flash_attn == Switch::off) return {2, kAnyWidth};
    if (!is_f16(context)) return {1, kAnyWidth};
    return {n_ctx > kSplitCells - kCellsAtOnce ? 2 : 1, kBlock - 1};
}

}  // namespace specllama
