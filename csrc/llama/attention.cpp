#include "llama/attention.h"

#include "llama/offload.h"

namespace specllama {

namespace {

// Its kernel takes the rows of a batch one by one: each reads the whole memory again. With smaller
// heads there are more of them, and the softmax between the two products costs more than that.
constexpr int kLeastHead = 96;
constexpr int kLargestHead = 128;

// Bytes of the scores, at most, of those of the weights.
constexpr double kScoresPerWeights = 0.5;

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
    return context.flash_attn == Switch::automatic && context.kv_type.value_or("f16") == "f16" &&
           header.head_size >= kLeastHead && header.head_size <= kLargestHead && !header.slides &&
           sizeof(float) * attention_scores(header, context, n_ctx) <=
               kScoresPerWeights * static_cast<double>(header.weight_bytes) &&
           offload_devices(model).empty();
}

}  // namespace specllama
