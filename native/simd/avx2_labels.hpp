// Vectors of labels for the chains of the CRF: see label_rows.inl. They do all that those of chains
// side by side do.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "x86_chains.hpp"

namespace hamflow {
namespace avx2 {

namespace {

struct Labels16 : Chains16 {
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V max(V a, V b) { return _mm256_max_epi16(a, b); }
    // The last half of a and the first of b; from it and a vector, the labels one before or after.
    static HAMFLOW_INLINE V between(V a, V b) { return _mm256_permute2x128_si256(a, b, 0x21); }
    static HAMFLOW_INLINE V below(V low, V v) { return _mm256_alignr_epi8(v, low, 14); }
    static HAMFLOW_INLINE V above(V v, V high) { return _mm256_alignr_epi8(high, v, 2); }
    // The minimum of all lanes, in all lanes.
    static HAMFLOW_INLINE V min_across(V v) {
        const __m128i sign = _mm_set1_epi16(-32768);  // vphminposuw is unsigned
        const __m128i m =
            _mm_min_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        const __m128i least = _mm_minpos_epu16(_mm_xor_si128(m, sign));
        return _mm256_broadcastw_epi16(_mm_xor_si128(least, sign));
    }
    static HAMFLOW_INLINE T first(V v) {
        return static_cast<T>(_mm_cvtsi128_si32(_mm256_castsi256_si128(v)));
    }
};

struct Labels32 : Chains32 {
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V max(V a, V b) { return _mm256_max_ps(a, b); }
    static HAMFLOW_INLINE V between(V a, V b) { return _mm256_permute2f128_ps(a, b, 0x21); }
    static HAMFLOW_INLINE V below(V low, V v) { return aligned<12>(v, low); }
    static HAMFLOW_INLINE V above(V v, V high) { return aligned<4>(high, v); }
    template <int bytes>
    static HAMFLOW_INLINE V aligned(V a, V b) {
        return _mm256_castsi256_ps(
            _mm256_alignr_epi8(_mm256_castps_si256(a), _mm256_castps_si256(b), bytes));
    }
    static HAMFLOW_INLINE V min_across(V v) {
        v = _mm256_min_ps(v, _mm256_permute2f128_ps(v, v, 1));
        v = _mm256_min_ps(v, _mm256_permute_ps(v, 0x4e));
        return _mm256_min_ps(v, _mm256_permute_ps(v, 0xb1));
    }
    static HAMFLOW_INLINE T first(V v) { return _mm256_cvtss_f32(v); }
};

}  // namespace

// Hamming distances of one descriptor to n others, 16 at a time by a table of nibbles.
template <int words>
inline void row_distances(const std::uint64_t* bits, const std::uint64_t* targets, int n,
                          std::int16_t* out) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                           2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    const auto load = [](const std::uint64_t* t) HAMFLOW_INLINE_LAMBDA {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t));
    };
    // The bits in each byte of four words that differ from the pixel's word.
    const auto counts = [&](int word, __m256i t) HAMFLOW_INLINE_LAMBDA {
        const __m256i x =
            _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(bits[word])), t);
        const __m256i a = _mm256_shuffle_epi8(table, _mm256_and_si256(x, low));
        const __m256i b =
            _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), low));
        return _mm256_add_epi8(a, b);
    };
    // Distances to the targets 0, 1, 2, 3; with two words, in the order 0, 2, 1, 3.
    const auto four = [&](const std::uint64_t* t) HAMFLOW_INLINE_LAMBDA {
        __m256i sum;
        if constexpr (words == 1) {
            sum = counts(0, load(t));
        } else {
            const __m256i t01 = load(t), t23 = load(t + 4);
            sum = _mm256_add_epi8(counts(0, _mm256_unpacklo_epi64(t01, t23)),
                                  counts(1, _mm256_unpackhi_epi64(t01, t23)));
        }
        return _mm256_sad_epu8(sum, _mm256_setzero_si256());
    };
    int k = 0;
    for (; k + 16 <= n; k += 16) {
        // Lanes of 64 bits, packed to 16 in two steps, which leaves pairs of them in this order:
        // 0 1 4 5 8 9 12 13 in the lower half, 2 3 6 7 10 11 14 15 in the upper one; or, with two
        // words, even ones in the lower half, odd ones in the upper.
        const std::uint64_t* t = targets + words * k;
        const __m256i ab = _mm256_packus_epi32(four(t), four(t + 4 * words));
        const __m256i cd = _mm256_packus_epi32(four(t + 8 * words), four(t + 12 * words));
        const __m256i all = _mm256_packus_epi32(ab, cd);
        if constexpr (words == 1) {
            const __m256i even = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + k),
                                _mm256_permutevar8x32_epi32(all, even));
        } else {
            const __m128i even = _mm256_castsi256_si128(all);
            const __m128i odd = _mm256_extracti128_si256(all, 1);
            auto* to = reinterpret_cast<__m128i*>(out + k);
            _mm_storeu_si128(to, _mm_unpacklo_epi16(even, odd));
            _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(even, odd));
        }
    }
    hamflow::row_distances<words>(bits, targets + words * k, n - k, out + k);
}

}  // namespace avx2
}  // namespace hamflow
