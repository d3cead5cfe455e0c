#include "vision/media_chunk.h"

#include <cstdint>

#include "files/sha256.h"
#include "mtmd.h"

namespace specllama {

namespace {

// Negative numbers below kNoToken: all bits except the last are a part of a hash of the content;
// the last bit marks the first id of the chunk. So chunks differ in every id.
std::vector<Token> make_ids(const std::string& key, int n) {
    const Sha256 hash = sha256({reinterpret_cast<const std::uint8_t*>(key.data()), key.size()});
    std::vector<Token> ids;
    ids.reserve(n);
    for (int i = 0; i < n; ++i) {
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 4; ++byte)
            bits = bits << 8 | hash[(4 * static_cast<std::size_t>(i) + byte) % hash.size()];
        const auto number = static_cast<std::int32_t>((bits & 0x3fffffff) % 0x3fffffff);
        ids.push_back(kNoToken - 1 - 2 * number - (i > 0 ? 1 : 0));
    }
    return ids;
}

}  // namespace

MediaChunk::MediaChunk(mtmd_input_chunk* chunk, const std::string& id, int part)
    : chunk_(chunk),
      key_(id + ":" + std::to_string(part)),
      n_rows_(static_cast<int>(mtmd_input_chunk_get_n_tokens(chunk))),
      ids_(make_ids(key_, mtmd_input_chunk_get_n_pos(chunk))) {}

MediaChunk::~MediaChunk() { mtmd_input_chunk_free(chunk_); }

}  // namespace specllama
