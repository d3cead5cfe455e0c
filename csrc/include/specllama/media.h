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

// An image or a sound for a model that sees or hears. Never changes; copies share the data.
class Media {
 public:
    // rgb: three bytes for each pixel, row after row, [height * width * 3]. Throws InvalidArgument
    // if these do not fit each other, or a side is 0.
    static Media image(std::span<const std::uint8_t> rgb, int width, int height);
    // samples: of one channel, from -1 to 1, at the model's rate (SessionInfo::audio_rate). Throws
    // InvalidArgument if there is none, or one is not a number.
    static Media audio(std::span<const float> samples);

    bool is_audio() const;
    // In pixels; 0: a sound.
    int width() const;
    int height() const;
    // The pixels of an image, the samples of a sound.
    std::span<const std::uint8_t> rgb() const;
    std::span<const float> samples() const;
    // A hash of all of this, in hexadecimal digits: other content has another one.
    const std::string& id() const;

 private:
    struct Data;
    explicit Media(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
    std::shared_ptr<const Data> data_;
};

// What a model reads at once of an image or a sound: all of it, a tile, or a piece.
class MediaChunk;
using MediaChunks = std::vector<std::shared_ptr<const MediaChunk>>;

// A prompt with images or sounds. Each chunk has a run of negative ids in `tokens`, as many as it
// takes positions, which depend on the content: prompts with equal ids have equal content.
struct MediaPrompt {
    std::vector<Token> tokens;
    MediaChunks chunks;  // one for each run
    // Rows of the memory that it takes: the tokens of its texts and what the chunks take, which may
    // be more than their positions.
    int n_rows = 0;
};

// A part of such a prompt: the tokens of a text, or what comes between two of these.
using PromptPart = std::variant<std::vector<Token>, Media>;

}  // namespace specllama
