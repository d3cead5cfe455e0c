#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "runtime/context.h"
#include "runtime/model.h"
#include "specllama/media.h"
#include "specllama/session_options.h"
#include "vision/encoding_cache.h"
#include "vision/media_chunk.h"

struct mtmd_context;

namespace specllama {

// Routes libmtmd's log to the log of ensure_backend(), once per process.
void ensure_mtmd();

// A multimodal projector, which encodes images and sounds for a model. Its file must have been
// accepted by check_projector.
class Vision {
 public:
    // model: the target. n_threads: threads that encode. Throws ModelError, OutOfMemory and
    // Interrupted.
    Vision(std::shared_ptr<const Model> model, const MediaOptions& options, int n_threads,
           Switch flash_attn, const ProgressFunction& progress);
    ~Vision();
    Vision(const Vision&) = delete;
    Vision& operator=(const Vision&) = delete;

    bool sees() const;
    // Samples of a sound per second; 0: sounds are not supported.
    int audio_rate() const;

    // The tokens of a prompt's parts, with those that the model expects around media. n_most: most
    // rows; reading stops with an error beyond them. n_at_once: see Context::n_batch. Throws
    // InvalidArgument if a medium cannot be used. Safe from any thread.
    MediaPrompt prompt(std::span<const PromptPart> parts, int n_most, int n_at_once) const;

    // Encodes a chunk, unless its encoding was kept, and decodes it into the memory of a sequence,
    // from a position on. Only one thread at a time may call it. Throws DecodeError.
    void decode(const MediaChunk& chunk, Context& context, SequenceId sequence, Position first);

    // How many chunks were encoded so far. Safe from any thread.
    int n_encoded() const { return n_encoded_; }

 private:
    void add(const Media& media, int n_at_once, MediaPrompt& prompt) const;
    std::span<float> encode(const MediaChunk& chunk);

    std::shared_ptr<const Model> model_;
    mtmd_context* context_ = nullptr;
    EncodingCache encoded_;
    std::atomic<int> n_encoded_ = 0;
};

// Bytes of device memory that the projector of these options takes: weights, compute buffers and,
// without a GPU, the encodings that it keeps. Throws ModelError.
std::size_t projector_bytes(const MediaOptions& options, const ModelOptions& model);

}  // namespace specllama
