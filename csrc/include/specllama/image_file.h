#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "specllama/media.h"

namespace specllama {

// Maximum number of bytes of an image file.
inline constexpr std::size_t kMostImageBytes = 50'000'000;
// Most pixels of an image; a phone takes 48 million. Models see a few million of them at most.
inline constexpr std::int64_t kMostImagePixels = 50'000'000;

// Throws InvalidArgument, with a sentence that begins with `name`, unless images of this size in
// pixels are accepted: at least 1 x 1, at most kMostImagePixels, and no side more than 200 times
// the other (as in Qwen's processors; projectors would scale such an image to nothing).
void check_image_size(const std::string& name, std::int64_t width, std::int64_t height);

// Decodes an image file with llama.cpp's reader (stb_image): PNG, JPEG, GIF (the first frame) or
// BMP. EXIF rotation and transparency are ignored. Throws InvalidArgument if the file cannot be
// read, is too large, damaged, or of another format. The size in the header is checked before
// anything is decoded.
Media read_image(const std::string& path);

}  // namespace specllama
