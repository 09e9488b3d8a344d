// Vectors of labels for the chains of the CRF: see label_rows.inl.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "common.hpp"

namespace hamflow {
namespace avx512 {

// Rows of labels in fixed point, for the chains.
struct Labels16 {
    using T = std::int16_t;
    using Share = std::uint16_t;  // in units of 2^-16
    using Sum = std::int64_t;
    using V = __m512i;
    static constexpr int width = 32;
    static constexpr T big = 32767, lowest = -32768;
    static constexpr Share nothing = 0;
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V loadu(const T* p) { return _mm512_loadu_si512(p); }
    static HAMFLOW_INLINE void storeu(T* p, V v) { _mm512_storeu_si512(p, v); }
    static HAMFLOW_INLINE V set1(T x) { return _mm512_set1_epi16(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return _mm512_add_epi16(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return _mm512_adds_epi16(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return _mm512_sub_epi16(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm512_min_epi16(a, b); }
    static HAMFLOW_INLINE V max(V a, V b) { return _mm512_max_epi16(a, b); }
    // Two vectors in succession; from them the labels one before or after.
    struct Between { V a, b; };
    static HAMFLOW_INLINE Between between(V a, V b) { return {a, b}; }
    static HAMFLOW_INLINE V below(Between low, V v) {
        return _mm512_alignr_epi8(v, _mm512_alignr_epi64(v, low.a, 6), 14);
    }
    static HAMFLOW_INLINE V above(V v, Between high) {
        return _mm512_alignr_epi8(_mm512_alignr_epi64(high.b, v, 2), v, 2);
    }
    static HAMFLOW_INLINE V share_of(Share g) { return _mm512_set1_epi16(static_cast<short>(g)); }
    // Rounded down; both are unsigned here.
    static HAMFLOW_INLINE V times(V a, V g) { return _mm512_mulhi_epu16(a, g); }
    // The minimum of all lanes, in all lanes.
    static HAMFLOW_INLINE V min_across(V v) {
        const __m128i sign = _mm_set1_epi16(-32768);  // vphminposuw is unsigned
        const __m256i half =
            _mm256_min_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
        const __m128i m =
            _mm_min_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        const __m128i least = _mm_minpos_epu16(_mm_xor_si128(m, sign));
        return _mm512_broadcastw_epi16(_mm_xor_si128(least, sign));
    }
    static HAMFLOW_INLINE T first(V v) {
        return static_cast<T>(_mm_cvtsi128_si32(_mm512_castsi512_si128(v)));
    }
    static Share share(int part, int of) {
        return static_cast<Share>((std::int64_t(part) << 16) / of);
    }
    static T twice(T x) { return saturate16(2 * x); }
};

// The same in whole numbers of float32.
struct Labels32 {
    using T = float;
    using Share = float;
    using Sum = double;
    using V = __m512;
    static constexpr int width = 16;
    static constexpr T big = 1e9f, lowest = -1e9f;
    static constexpr Share nothing = 0;
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V loadu(const T* p) { return _mm512_loadu_ps(p); }
    static HAMFLOW_INLINE void storeu(T* p, V v) { _mm512_storeu_ps(p, v); }
    static HAMFLOW_INLINE V set1(T x) { return _mm512_set1_ps(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return _mm512_add_ps(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm512_min_ps(a, b); }
    static HAMFLOW_INLINE V max(V a, V b) { return _mm512_max_ps(a, b); }
    struct Between { V a, b; };
    static HAMFLOW_INLINE Between between(V a, V b) { return {a, b}; }
    static HAMFLOW_INLINE V below(Between low, V v) { return shifted<15>(low.a, v); }
    static HAMFLOW_INLINE V above(V v, Between high) { return shifted<1>(v, high.b); }
    template <int labels>
    static HAMFLOW_INLINE V shifted(V a, V b) {
        return _mm512_castsi512_ps(
            _mm512_alignr_epi32(_mm512_castps_si512(b), _mm512_castps_si512(a), labels));
    }
    static HAMFLOW_INLINE V share_of(Share g) { return _mm512_set1_ps(g); }
    static HAMFLOW_INLINE V times(V a, V g) {
        return _mm512_roundscale_ps(_mm512_mul_ps(a, g), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }
    static HAMFLOW_INLINE V min_across(V v) { return _mm512_set1_ps(_mm512_reduce_min_ps(v)); }
    static HAMFLOW_INLINE T first(V v) { return _mm512_cvtss_f32(v); }
    static Share share(int part, int of) {
        return static_cast<Share>(part) / static_cast<Share>(of);
    }
    static T twice(T x) { return 2 * x; }
};

// Hamming distances of one descriptor to n others.
inline void row_distances(std::uint64_t bits, const std::uint64_t* targets, int n,
                          std::int16_t* out) {
    for (int k = 0; k < n; ++k) out[k] = static_cast<std::int16_t>(popcount64(bits ^ targets[k]));
}

}  // namespace avx512
}  // namespace hamflow
