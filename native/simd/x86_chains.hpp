// For chains side by side (chains_abreast.inl), on AVX2 and AVX-512: vectors of 256 bits. Those of
// 512 would be no faster on machines that compute them in two halves, need twice the room, and are
// harder to share out evenly among threads.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "labels.hpp"

namespace hamflow {
namespace {

struct Chains16 : FixedLabels {
    using V = __m256i;
    static constexpr int width = 16;
    static HAMFLOW_INLINE V loadu(const T* p) {
        return _mm256_loadu_si256(reinterpret_cast<const V*>(p));
    }
    static HAMFLOW_INLINE void storeu(T* p, V v) {
        _mm256_storeu_si256(reinterpret_cast<V*>(p), v);
    }
    static HAMFLOW_INLINE V set1(T x) { return _mm256_set1_epi16(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return _mm256_add_epi16(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return _mm256_adds_epi16(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return _mm256_sub_epi16(a, b); }
    static HAMFLOW_INLINE V subs(V a, V b) { return _mm256_subs_epi16(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm256_min_epi16(a, b); }
    static HAMFLOW_INLINE V share_of(Share g) { return _mm256_set1_epi16(static_cast<short>(g)); }
    // Rounded down; both are unsigned here.
    static HAMFLOW_INLINE V times(V a, V g) { return _mm256_mulhi_epu16(a, g); }

    static constexpr int group = 8;
    static HAMFLOW_INLINE V zip_low(V a, V b) { return _mm256_unpacklo_epi16(a, b); }
    static HAMFLOW_INLINE V zip_high(V a, V b) { return _mm256_unpackhi_epi16(a, b); }
    static HAMFLOW_INLINE V load_pieces(const T* p, const std::ptrdiff_t* offset) {
        const auto piece = [&](int i) HAMFLOW_INLINE_LAMBDA {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + offset[i * group]));
        };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(piece(0)), piece(1), 1);
    }
    static HAMFLOW_INLINE void store_pieces(T* p, const std::ptrdiff_t* offset, V v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p + offset[0]), _mm256_castsi256_si128(v));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p + offset[group]),
                         _mm256_extracti128_si256(v, 1));
    }
};

struct Chains32 : FloatLabels {
    using V = __m256;
    static constexpr int width = 8;
    static HAMFLOW_INLINE V loadu(const T* p) { return _mm256_loadu_ps(p); }
    static HAMFLOW_INLINE void storeu(T* p, V v) { _mm256_storeu_ps(p, v); }
    static HAMFLOW_INLINE V set1(T x) { return _mm256_set1_ps(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return _mm256_add_ps(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm256_min_ps(a, b); }
    static HAMFLOW_INLINE V share_of(Share g) { return _mm256_set1_ps(g); }
    static HAMFLOW_INLINE V times(V a, V g) { return _mm256_floor_ps(_mm256_mul_ps(a, g)); }

    static constexpr int group = 4;
    static HAMFLOW_INLINE V zip_low(V a, V b) { return _mm256_unpacklo_ps(a, b); }
    static HAMFLOW_INLINE V zip_high(V a, V b) { return _mm256_unpackhi_ps(a, b); }
    static HAMFLOW_INLINE V load_pieces(const T* p, const std::ptrdiff_t* offset) {
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + offset[0])),
                                    _mm_loadu_ps(p + offset[group]), 1);
    }
    static HAMFLOW_INLINE void store_pieces(T* p, const std::ptrdiff_t* offset, V v) {
        _mm_storeu_ps(p + offset[0], _mm256_castps256_ps128(v));
        _mm_storeu_ps(p + offset[group], _mm256_extractf128_ps(v, 1));
    }
};

}  // namespace
}  // namespace hamflow
