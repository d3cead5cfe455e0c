#include "llama/attention.h"

#include <limits>
#include <string>

#include "ggml-cpu.h"
#include "llama/kv_type.h"
#include "llama/offload.h"
#include "system/host.h"

namespace specllama {

namespace {

// The flash kernel takes the rows of a batch one by one, and each reads the whole KV memory again.
// But models with smaller heads have more of them, and without flash attention the softmax between
// the two matrix products then costs more than that.
constexpr int kLeastHead = 96;
constexpr int kLargestHead = 128;
// With AVX-512 FP16 the flash kernel adds up 128 values at a time, and the rest of a head one by
// one, so heads of 64 numbers are faster without it, too.
constexpr int kLeastHeadOfLeftovers = 64;

int least_head() {
    return ggml_cpu_has_avx512() != 0 && has_avx512_fp16() ? kLeastHeadOfLeftovers : kLeastHead;
}

// Most bytes of the scores. They are reserved for a whole batch at the end of the context, but not
// touched until then.
constexpr double kMostBytes = 2.0 * (1 << 30);

// Rows of a block of the flash kernel: ggml's GGML_FA_TILE_Q.
constexpr int kBlock = 64;

}  // namespace

double attention_scores(const Header& header, int n_batch, double n_seen) {
    return n_seen * n_batch * header.n_heads;
}

bool faster_without_flash(const Header& header, const ModelOptions& model,
                          const ContextOptions& context, int n_ctx) {
#if !defined(__x86_64__)
    return false;
#endif
    // With several sequences flash attention skips what a token does not see; matrix products
    // cannot.
    return context.flash_attn == Switch::automatic && context.n_seq == 1 &&
           kv_type_name(context) == "f16" && header.head_size >= least_head() &&
           header.head_size <= kLargestHead && !header.slides &&
           sizeof(float) * attention_scores(header, context.n_batch, n_ctx) <= kMostBytes &&
           offload_devices(model).empty();
}

int most_rows_together(const ModelOptions& model, const ContextOptions& context) {
    const std::string kv = kv_type_name(context);
    const bool in_blocks = context.flash_attn != Switch::off && (kv == "f16" || kv == "f32") &&
                           offload_devices(model).empty();
    return in_blocks ? kBlock - 1 : std::numeric_limits<int>::max();
}

}  // namespace specllama
