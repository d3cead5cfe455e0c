#include "vision/vision.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "device/offload.h"
#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "llama/load_progress.h"
#include "mtmd-helper.h"
#include "mtmd.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// About 50 images of Gemma 3, or a dozen screenshots in a model of Qwen.
constexpr std::size_t kMostEncodedBytes = 128U << 20;

mtmd_context_params make_params(const MediaOptions& options, const ModelOptions& model) {
    ensure_mtmd();
    mtmd_context_params params = mtmd_context_params_default();
    const std::vector<ggml_backend_dev_t> devices = offload_devices(model);
    params.use_gpu = options.mmproj_offload && !devices.empty();
    if (params.use_gpu) params.device = devices.front();
    params.print_timings = false;
    params.image_min_tokens = options.image_min_tokens.value_or(-1);
    params.image_max_tokens = options.image_max_tokens.value_or(-1);
    return params;
}

[[noreturn]] void fail(const MediaOptions& options, const std::string& why) {
    throw ModelError("Cannot use " + options.mmproj + " as a projector: " + why + ".");
}

std::string reason(const AssertGuard& assertions, const ErrorLog& errors) {
    return assertions.failed().empty() ? errors.reason() : assertions.failed();
}

const char* name(const Media& media) { return media.is_audio() ? "A sound" : "An image"; }

mtmd::bitmap make_bitmap(const Media& media) {
    return mtmd::bitmap(
        media.is_audio()
            ? mtmd_bitmap_init_from_audio(media.samples().size(), media.samples().data())
            : mtmd_bitmap_init(static_cast<std::uint32_t>(media.width()),
                               static_cast<std::uint32_t>(media.height()), media.rgb().data()));
}

}  // namespace

void ensure_mtmd() {
    static std::once_flag once;
    std::call_once(once, [] { mtmd_helper_log_set(log_callback(), nullptr); });
}

std::size_t projector_bytes(const MediaOptions& options, const ModelOptions& model) {
    const mtmd_context_params params = make_params(options, model);
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    std::size_t n_bytes = 0;
    for (const auto& [device, bytes] : mtmd_get_memory_usage(options.mmproj.c_str(), params))
        n_bytes += bytes;
    if (n_bytes > 0) return n_bytes + (params.use_gpu ? 0 : kMostEncodedBytes);
    // It gives no reason for a failure.
    const ErrorLog why(ErrorLog::Warnings::dropped);
    if (assertions.failed().empty())
        mtmd_free(mtmd_init_from_file(options.mmproj.c_str(), nullptr, params));
    fail(options, reason(assertions, why));
}

Vision::Vision(std::shared_ptr<const Model> model, const MediaOptions& options, int n_threads,
               Switch flash_attn, const ProgressFunction& progress)
    : model_(std::move(model)), encoded_(kMostEncodedBytes) {
    mtmd_context_params params = make_params(options, model_->options());
    params.n_threads = n_threads;
    params.flash_attn_type = flash_attn == Switch::off  ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                             : flash_attn == Switch::on ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                                                        : LLAMA_FLASH_ATTN_TYPE_AUTO;
    LoadProgress carrier(progress);
    params.progress_callback = LoadProgress::call;
    params.progress_callback_user_data = &carrier;
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    context_ = mtmd_init_from_file(options.mmproj.c_str(), model_->get(), params);
    carrier.check(options.mmproj);
    if (context_ == nullptr) fail(options, reason(assertions, errors));
}

Vision::~Vision() { mtmd_free(context_); }

bool Vision::sees() const { return mtmd_support_vision(context_); }

int Vision::audio_rate() const { return std::max(mtmd_get_audio_sample_rate(context_), 0); }

MediaPrompt Vision::prompt(std::span<const PromptPart> parts, int n_most, int n_at_once) const {
    MediaPrompt prompt;
    for (const PromptPart& part : parts) {
        if (const auto* tokens = std::get_if<std::vector<Token>>(&part)) {
            prompt.tokens.insert(prompt.tokens.end(), tokens->begin(), tokens->end());
            prompt.n_rows += static_cast<int>(tokens->size());
        } else {
            add(std::get<Media>(part), n_at_once, prompt);
        }
        if (prompt.n_rows > n_most)
            throw InvalidArgument("The prompt has at least " + std::to_string(prompt.n_rows) +
                                  " tokens, images included, but the context has " +
                                  std::to_string(n_most) + "; shorten it or raise n_ctx.");
    }
    return prompt;
}

// Also adds the tokens that the model expects before, between and after the chunks.
void Vision::add(const Media& media, int n_at_once, MediaPrompt& prompt) const {
    if (media.is_audio() ? audio_rate() == 0 : !sees())
        throw InvalidArgument(std::string(name(media)) +
                              " cannot be used: the projector does not encode it.");
    const mtmd::bitmap bitmap = make_bitmap(media);
    const mtmd_bitmap* bitmaps[] = {bitmap.ptr.get()};
    const std::string marker = mtmd_get_marker(context_);
    const mtmd_input_text text{marker.data(), marker.size(), false, true};
    const mtmd::input_chunks chunks(mtmd_input_chunks_init());
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    if (mtmd_tokenize(context_, chunks.ptr.get(), &text, bitmaps, 1) != 0)
        throw InvalidArgument(std::string(name(media)) +
                              " cannot be used: " + reason(assertions, errors) + ".");
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (mtmd_input_chunk_get_type(chunks[i]) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
            std::size_t n = 0;
            const Token* tokens = mtmd_input_chunk_get_tokens_text(chunks[i], &n);
            prompt.tokens.insert(prompt.tokens.end(), tokens, tokens + n);
            prompt.n_rows += static_cast<int>(n);
            continue;
        }
        const auto chunk = std::make_shared<const MediaChunk>(mtmd_input_chunk_copy(chunks[i]),
                                                              media.id(), static_cast<int>(i));
        if (chunk->n_rows() > n_at_once && mtmd_decode_use_non_causal(context_, chunk->get()))
            throw InvalidArgument(std::string(name(media)) + " takes " +
                                  std::to_string(chunk->n_rows()) +
                                  " tokens, which the model reads at once, but n_batch is only " +
                                  std::to_string(n_at_once) + "; raise it.");
        prompt.tokens.insert(prompt.tokens.end(), chunk->ids().begin(), chunk->ids().end());
        prompt.n_rows += chunk->n_rows();
        prompt.chunks.push_back(chunk);
    }
}

// Returns the encoding of a chunk, [rows * width], valid until the next call.
std::span<float> Vision::encode(const MediaChunk& chunk) {
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions(AssertGuard::Scope::graphs);
    if (mtmd_encode_chunk(context_, chunk.get()) != 0)
        throw DecodeError("The projector could not encode an image or a sound: " +
                          reason(assertions, errors) + ".");
    ++n_encoded_;
    const auto width = static_cast<std::size_t>(llama_model_n_embd_inp(model_->get()));
    return {mtmd_get_output_embd(context_), static_cast<std::size_t>(chunk.n_rows()) * width};
}

void Vision::decode(const MediaChunk& chunk, Context& context, SequenceId sequence,
                    Position first) {
    std::span<float> states = encoded_.find(chunk.key());
    if (states.empty()) {
        states = encode(chunk);
        encoded_.keep(chunk.key(), states);
    }
    const auto decode = [&](llama_context* target) {
        llama_pos end = 0;
        return mtmd_helper_decode_image_chunk(context_, target, chunk.get(), states.data(), first,
                                              sequence, context.n_batch(), &end, nullptr, nullptr);
    };
    context.decode_by(sequence, first, chunk.n_positions(), decode);
}

}  // namespace specllama
