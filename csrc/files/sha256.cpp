#include "files/sha256.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace specllama {

namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLengthAt = kBlock - 8;  // in the last block

// The first 32 fractional bits of the root of a prime.
std::uint32_t fraction(long double root) {
    return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
}

struct Constants {
    std::array<std::uint32_t, 8> start;   // from square roots of the first primes
    std::array<std::uint32_t, 64> round;  // from cube roots

    Constants() {
        std::size_t n = 0;
        for (int candidate = 2; n < round.size(); ++candidate) {
            bool is_prime = true;
            for (int i = 2; i * i <= candidate; ++i) is_prime = is_prime && candidate % i != 0;
            if (!is_prime) continue;
            const auto prime = static_cast<long double>(candidate);
            if (n < start.size()) start[n] = fraction(std::sqrt(prime));
            round[n++] = fraction(std::cbrt(prime));
        }
    }
};

void add_block(std::array<std::uint32_t, 8>& hash, const std::uint8_t* block,
               const Constants& constants) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i)
        for (std::size_t byte = 0; byte < 4; ++byte) w[i] = w[i] << 8 | block[4 * i + byte];
    for (std::size_t i = 16; i < w.size(); ++i) {
        const std::uint32_t a = w[i - 15];
        const std::uint32_t b = w[i - 2];
        w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & f) ^ (~e & g)) + constants.round[i] + w[i];
        const std::uint32_t other =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + other;
    }
    const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += sums[i];
}

}  // namespace

Sha256 sha256(std::span<const std::uint8_t> bytes) {
    static const Constants constants;
    std::array<std::uint32_t, 8> hash = constants.start;
    const std::uint64_t n_bits = std::uint64_t{8} * bytes.size();
    for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock))
        add_block(hash, bytes.data(), constants);
    // The remaining bytes, a bit 1, zeros, and the length in bits.
    std::array<std::uint8_t, 2 * kBlock> last{};
    if (!bytes.empty()) std::memcpy(last.data(), bytes.data(), bytes.size());
    last[bytes.size()] = 0x80;
    const std::size_t end = bytes.size() < kLengthAt ? kBlock : 2 * kBlock;
    for (std::size_t i = 0; i < 8; ++i)
        last[end - 1 - i] = static_cast<std::uint8_t>(n_bits >> (8 * i));
    for (std::size_t at = 0; at < end; at += kBlock) add_block(hash, last.data() + at, constants);
    Sha256 result{};
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = static_cast<std::uint8_t>(hash[i / 4] >> (24 - 8 * (i % 4)));
    return result;
}

}  // namespace specllama
