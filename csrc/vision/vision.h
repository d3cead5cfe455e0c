#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/context.h"
#include "runtime/model.h"
#include "specllama/media.h"
#include "specllama/session_options.h"
#include "vision/media_chunk.h"

struct mtmd_context;

namespace specllama {

// A multimodal projector: how a model sees and hears. Made of a file that check_projector has
// accepted.
class Vision {
 public:
    // model: the target. n_threads: that encode. Throws ModelError, OutOfMemory and Interrupted.
    Vision(std::shared_ptr<const Model> model, const MediaOptions& options, int n_threads,
           Switch flash_attn, const ProgressFunction& progress);
    ~Vision();
    Vision(const Vision&) = delete;
    Vision& operator=(const Vision&) = delete;

    bool sees() const;
    // Samples of a sound per second; 0: it hears none.
    int audio_rate() const;

    // The tokens of a prompt's parts, with those that the model expects around media. n_most: rows
    // that it may take; no more media are read than that. n_at_once:
    // see Context::n_batch. Throws InvalidArgument if a medium cannot be used. Safe from any
    // thread.
    MediaPrompt prompt(std::span<const PromptPart> parts, int n_most, int n_at_once) const;

    // Encodes a chunk and decodes it into the memory of a sequence, from a position on; at the
    // same time only one thread may. Throws DecodeError.
    void decode(const MediaChunk& chunk, Context& context, SequenceId sequence, Position first);

 private:
    void add(const Media& media, int n_at_once, MediaPrompt& prompt) const;

    std::shared_ptr<const Model> model_;
    mtmd_context* context_ = nullptr;
};

// Bytes that the projector of these options takes of the memory of its device: its weights, and
// what it computes with. Throws ModelError.
std::size_t projector_bytes(const MediaOptions& options, const ModelOptions& model);

}  // namespace specllama
