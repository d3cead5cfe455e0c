#include "llama/attention.h"

#include "ggml-cpu.h"
#include "llama/offload.h"
#include "system/host.h"

namespace specllama {

namespace {

// Its kernel takes the rows of a batch one by one: each reads the whole memory again. With smaller
// heads there are more of them, and the softmax between the two products costs more than that.
constexpr int kLeastHead = 96;
constexpr int kLargestHead = 128;
// But where llama.cpp adds up values of 16 bits with AVX-512, it takes 128 of them at a time, and
// what is left over one by one.
constexpr int kLeastHeadOfLeftovers = 64;

int least_head() {
    return ggml_cpu_has_avx512() != 0 && has_avx512_fp16() ? kLeastHeadOfLeftovers : kLeastHead;
}

// Reserved for a whole batch at the end of the context, and not touched before.
constexpr double kMostBytes = 2.0 * (1 << 30);

}  // namespace

double attention_scores(const Header& header, const ContextOptions& context, int n_ctx) {
    const double n_seen = context.split ? n_ctx : static_cast<double>(context.n_seq) * n_ctx;
    return n_seen * context.n_batch * header.n_heads;
}

bool faster_without_flash(const Header& header, const ModelOptions& model,
                          const ContextOptions& context, int n_ctx) {
#if !defined(__x86_64__)
    return false;
#endif
    // Of several sequences it leaves out what a token does not see, which products of matrices
    // cannot.
    return context.flash_attn == Switch::automatic && context.n_seq == 1 &&
           context.kv_type.value_or("f16") == "f16" && header.head_size >= least_head() &&
           header.head_size <= kLargestHead && !header.slides &&
           sizeof(float) * attention_scores(header, context, n_ctx) <= kMostBytes &&
           offload_devices(model).empty();
}

}  // namespace specllama
