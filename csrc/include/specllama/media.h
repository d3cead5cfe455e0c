#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "specllama/types.h"

namespace specllama {

// An image or a sound for a multimodal model. Immutable; copies share the data.
class Media {
 public:
    // rgb: three bytes for each pixel, row after row, [height * width * 3]. Throws InvalidArgument
    // if the sizes do not match, or a side is 0.
    static Media image(std::span<const std::uint8_t> rgb, int width, int height);
    // samples: one channel, from -1 to 1, at the model's rate (SessionInfo::audio_rate). Throws
    // InvalidArgument if there are none, or one is not finite.
    static Media audio(std::span<const float> samples);

    bool is_audio() const;
    // In pixels; 0: a sound.
    int width() const;
    int height() const;
    // The pixels of an image, the samples of a sound.
    std::span<const std::uint8_t> rgb() const;
    std::span<const float> samples() const;
    // A hash of the content, in hexadecimal digits.
    const std::string& id() const;

 private:
    struct Data;
    explicit Media(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
    std::shared_ptr<const Data> data_;
};

// The part of an image or a sound that a model reads at once: all of it, a tile, or a piece.
class MediaChunk;
using MediaChunks = std::vector<std::shared_ptr<const MediaChunk>>;

// A prompt with images or sounds. Each chunk has a run of negative ids in `tokens`, one per
// position. They depend on the content: prompts with equal ids have equal content.
struct MediaPrompt {
    std::vector<Token> tokens;
    MediaChunks chunks;  // one for each run
    // Rows of the KV memory that it takes: one per text token, and those of the chunks, which may
    // be more than their positions.
    int n_rows = 0;
};

// A part of such a prompt: the tokens of a text, an image, or a sound.
using PromptPart = std::variant<std::vector<Token>, Media>;

}  // namespace specllama
