// Emulates Intel's AMX int8 tiles on processors with AVX-512 VNNI. Included before every C++ file
// of llama.cpp, with __AMX_INT8__ defined, it makes AMX's kernels run with the same integers and so
// the same bits; see `make test-amx`.
#pragma once
#if defined(__cplusplus)
#include <immintrin.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace amx_tiles {

struct Config {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t n_rows[16];
};
struct Tile {
    alignas(64) std::uint8_t row[16][64];
};
inline thread_local Config config;
inline thread_local Tile tiles[8];

inline void configure(const void* from) { std::memcpy(&config, from, sizeof(config)); }

inline void zero(int t) { std::memset(&tiles[t], 0, sizeof(Tile)); }

inline void load(int t, const void* from, std::size_t stride) {
    zero(t);
    for (int r = 0; r < config.n_rows[t]; ++r)
        std::memcpy(tiles[t].row[r], static_cast<const char*>(from) + r * stride,
                    config.row_bytes[t]);
}

inline void store(int t, void* to, std::size_t stride) {
    for (int r = 0; r < config.n_rows[t]; ++r)
        std::memcpy(static_cast<char*>(to) + r * stride, tiles[t].row[r], config.row_bytes[t]);
}

// c += a b, for signed bytes. VNNI requires an unsigned first factor: 128 is added to it, and its
// product is subtracted.
inline void multiply(int c, int a, int b) {
    const int n = config.row_bytes[a] / 4;
    const __m512i bias = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i rows[16];
    __m512i offset = _mm512_setzero_si512();
    for (int k = 0; k < n; ++k) {
        rows[k] = _mm512_load_si512(tiles[b].row[k]);
        offset = _mm512_dpbusd_epi32(offset, bias, rows[k]);
    }
    for (int m = 0; m < config.n_rows[c]; ++m) {
        __m512i sum = _mm512_sub_epi32(_mm512_load_si512(tiles[c].row[m]), offset);
        for (int k = 0; k < n; ++k) {
            std::int32_t four;
            std::memcpy(&four, tiles[a].row[m] + 4 * k, 4);
            sum =
                _mm512_dpbusd_epi32(sum, _mm512_xor_si512(_mm512_set1_epi32(four), bias), rows[k]);
        }
        _mm512_store_si512(tiles[c].row[m], sum);
    }
}

}  // namespace amx_tiles

#undef _tile_loadconfig
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig(from) ::amx_tiles::configure(from)
#define _tile_zero(t) ::amx_tiles::zero(t)
#define _tile_loadd(t, from, stride) ::amx_tiles::load(t, from, stride)
#define _tile_stored(t, to, stride) ::amx_tiles::store(t, to, stride)
#define _tile_dpbssd(c, a, b) ::amx_tiles::multiply(c, a, b)

// The kernel would refuse the request to use tiles; this call always succeeds.
#undef SYS_arch_prctl
#define SYS_arch_prctl SYS_sched_yield
#endif
