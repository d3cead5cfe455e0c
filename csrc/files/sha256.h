#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace specllama {

// The SHA-256 hash of bytes (FIPS 180-4). No two inputs with the same hash can be constructed, so
// an image with the hash of an earlier request's image is the same image.
using Sha256 = std::array<std::uint8_t, 32>;
Sha256 sha256(std::span<const std::uint8_t> bytes);

}  // namespace specllama
