// Vectors of labels for the chains of the CRF: see label_rows.inl.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "labels.hpp"

namespace hamflow {
namespace avx512 {

struct Labels16 : FixedLabels {
    using V = __m512i;
    static constexpr int width = 32;
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
};

struct Labels32 : FloatLabels {
    using V = __m512;
    static constexpr int width = 16;
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
};

}  // namespace avx512
}  // namespace hamflow
