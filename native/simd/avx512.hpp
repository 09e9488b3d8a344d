// AVX-512 of the Ice Lake class: 64 labels per vector, Hamming distances by vpopcntb.
//
// The planes are the descriptors' bytes, eight of each word. Pixels (x, y) and (x, y + 1) see the same targets
// in the same lanes, so each load of targets serves 128 entries of the 4D cost.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own _mm512_undefined_ps() (bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

#include "common.hpp"

namespace hamflow {
namespace avx512 {

// GCC would rather load twice, as an operand of both pixels' xor; but these loads cross lines.
HAMFLOW_INLINE __m512i load_once(const std::uint8_t* p) {
    __m512i v = _mm512_loadu_si512(p);
    asm("" : "+v"(v));
    return v;
}

template <int words>
struct Bits {
    using V = __m512i;                  // 64 distances, uint8
    using D = V;
    static constexpr int lanes = 64;
    static constexpr int block = 2;     // vectors that share the pixels' bytes in registers
    static constexpr int columns = 32;
    static constexpr int elem = 1;
    static constexpr int planes = 8 * words;

    static void build_planes(const std::uint64_t* row, int w, std::uint8_t* out,
                             std::size_t stride) {
        for (int p = 0; p < planes; ++p) {
            std::uint8_t* plane = out + p * stride;
            for (int x = 0; x < w; ++x)
                plane[x] = static_cast<std::uint8_t>(row[x * words + p / 8] >> (8 * (p % 8)));
        }
    }

    // The bytes of both pixels, each four times: a broadcast of 32 bits is done by the load
    // port alone, one of 8 bits would also take port 5, where the popcounts queue.
    struct Pair {
        alignas(64) std::uint32_t byte[2][planes];

        void set(const std::uint64_t* a, const std::uint64_t* b) {
            const auto four_times = [](const std::uint64_t* bits, int p) {
                return 0x01010101u * static_cast<std::uint8_t>(bits[p / 8] >> (8 * (p % 8)));
            };
            for (int p = 0; p < planes; ++p) {
                byte[0][p] = four_times(a, p);
                byte[1][p] = four_times(b, p);
            }
        }
    };

    // Where `distances` finds its targets: see TargetPlanes in bits_tiles.inl. A vector as wide as
    // a cache line mostly crosses into the next one; here the load ports have time for that.
    static constexpr int plane_stride = 2 * lanes * elem;
    static constexpr int vector_stride = planes * plane_stride;

    // Distances of the pair's two pixels to N x 64 targets; `t` points into their planes.
    template <int N>
    static HAMFLOW_INLINE void distances(const Pair& pair, const std::uint8_t* t, V* da, V* db) {
        unroll<words>([&](auto word) HAMFLOW_INLINE_LAMBDA {
            constexpr int first = 8 * word;
            V a[8], b[8];
            unroll<8>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                a[p] = _mm512_set1_epi32(static_cast<int>(pair.byte[0][first + p]));
                b[p] = _mm512_set1_epi32(static_cast<int>(pair.byte[1][first + p]));
            });
            unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                unroll<8>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                    const V q = load_once(t + (first + p) * plane_stride + j * vector_stride);
                    const V ca = _mm512_popcnt_epi8(_mm512_xor_si512(q, a[p]));
                    const V cb = _mm512_popcnt_epi8(_mm512_xor_si512(q, b[p]));
                    da[j] = first + p ? _mm512_add_epi8(da[j], ca) : ca;
                    db[j] = first + p ? _mm512_add_epi8(db[j], cb) : cb;
                });
            });
        });
    }

    // --- distances of pixels in lanes: messages_abreast.inl ------------------------------------
    static constexpr bool pixels_abreast = true;
    static HAMFLOW_INLINE V load_target(const std::uint8_t* p) { return load_once(p); }
    static HAMFLOW_INLINE V count(V a, V b) { return _mm512_popcnt_epi8(_mm512_xor_si512(a, b)); }
    static HAMFLOW_INLINE V plus_count(V sum, V a, V b) {
        return _mm512_add_epi8(sum, count(a, b));
    }

    // --- uint8 -------------------------------------------------------------------------------
    static HAMFLOW_INLINE V load(const std::uint8_t* p) { return _mm512_load_si512(p); }
    static HAMFLOW_INLINE V loadu(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
    static HAMFLOW_INLINE void store(std::uint8_t* p, V v) { _mm512_store_si512(p, v); }
    static HAMFLOW_INLINE V set1(std::uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm512_min_epu8(a, b); }
    static HAMFLOW_INLINE V bit_or(V a, V b) { return _mm512_or_si512(a, b); }

    // Minima of the tile's 2 x 32 vectors, rows[2 i + p], to out_p[i]: a transposing tree. Its
    // first level, which folds the vectors of a column to one, takes half of the shuffles away
    // from port 5 by loads that begin in the middle.
    static HAMFLOW_INLINE void row_minima(const std::uint8_t* rows, std::uint8_t* out_a,
                                          std::uint8_t* out_b) {
        const auto fold = [&](int i) HAMFLOW_INLINE_LAMBDA {
            const std::uint8_t* a = rows + 2 * i * lanes;
            return min(_mm512_mask_loadu_epi64(load(a), 0xf0, a + lanes), loadu(a + lanes / 2));
        };
        const auto merge = [](V a, V b) HAMFLOW_INLINE_LAMBDA {
            return min(_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
        };
        V m[16];
        unroll<16>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            const V lo = fold(i), hi = fold(i + 16);
            m[i] = min(_mm512_shuffle_i64x2(lo, hi, 0x88), _mm512_shuffle_i64x2(lo, hi, 0xdd));
        });
        unroll<8>([&](auto i) HAMFLOW_INLINE_LAMBDA { m[i] = merge(m[i], m[i + 8]); });
        unroll<4>([&](auto i) HAMFLOW_INLINE_LAMBDA { m[i] = merge(m[i], m[i + 4]); });
        m[0] = merge(merge(m[0], m[2]), merge(m[1], m[3]));
        // Quarters so far: pixel a of the columns 0-15, b of these, a of 16-31, b of these.
        m[0] = _mm512_shuffle_i64x2(m[0], m[0], 0xd8);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out_a), _mm512_castsi512_si256(m[0]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out_b),
                            _mm512_extracti64x4_epi64(m[0], 1));
    }

    // --- the running argmin ------------------------------------------------------------------
    // best = min(best, d) and, where d is strictly smaller, index = k (int16).
    static HAMFLOW_INLINE void keep_min(std::uint8_t* best, std::int16_t* index, V d,
                                        std::int16_t k) {
        const V old = load(best);
        const __mmask64 less = _mm512_cmplt_epu8_mask(d, old);
        store(best, min(old, d));
        const V kk = _mm512_set1_epi16(k);
        _mm512_mask_storeu_epi16(index, static_cast<__mmask32>(less), kk);
        _mm512_mask_storeu_epi16(index + 32, static_cast<__mmask32>(less >> 32), kk);
    }
    static int index_position(int lane) { return lane; }
    static HAMFLOW_INLINE void keep_min(V& best, V& index, V d, V k) {
        index = _mm512_mask_mov_epi8(index, _mm512_cmplt_epu8_mask(d, best), k);
        best = min(best, d);
    }

    // --- int16: even labels in the first half, odd ones in the second ---------------------------
    static constexpr int lanes16 = 32;
    static int position16(int lane) { return (lane & 1) * 32 + (lane >> 1); }
    static HAMFLOW_INLINE V load16(const std::int16_t* p) { return _mm512_load_si512(p); }
    static HAMFLOW_INLINE void store16(std::int16_t* p, V v) { _mm512_store_si512(p, v); }
    static HAMFLOW_INLINE V set1_16(std::int16_t x) { return _mm512_set1_epi16(x); }
    static HAMFLOW_INLINE V max16(V a, V b) { return _mm512_max_epi16(a, b); }
    static int pixel_of16(int position) { return position % 32 * 2 + position / 32; }
    // -step * distance of the even (odd) labels; step <= 128.
    struct Scale {
        V even, odd;
        explicit Scale(int step) {
            even = _mm512_set1_epi16(static_cast<short>((-step) & 0xff));
            odd = _mm512_slli_epi16(even, 8);
        }
    };
    static HAMFLOW_INLINE V scaled16(V d, const Scale& s, int half) {
        return _mm512_maddubs_epi16(d, half ? s.odd : s.even);
    }
    // x - step * distance, saturating.
    static HAMFLOW_INLINE V minus_scaled16(V x, V scaled) { return _mm512_adds_epi16(x, scaled); }
    // The maxima of the four 128-bit quarters.
    static HAMFLOW_INLINE void store_folded16(std::int16_t* p, V v) {
        const __m256i h =
            _mm256_max_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
        const __m128i m =
            _mm_max_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), m);
    }
    // Maxima of the vectors rows[2 i + p], i < n, to out_p[i]: eight columns at a time by a
    // transposing tree; n is rounded up, the rows beyond it are there.
    static HAMFLOW_INLINE void row_maxima16(const std::int16_t* rows, int n, std::int16_t* out_a,
                                            std::int16_t* out_b) {
        const auto merge = [](V a, V b) HAMFLOW_INLINE_LAMBDA {
            return max16(_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
        };
        for (int i = 0; i < n; i += 8, rows += 16 * lanes16) {
            V m[8];
            unroll<8>([&](auto r) HAMFLOW_INLINE_LAMBDA {
                m[r] = merge(load16(rows + r * lanes16), load16(rows + (r + 8) * lanes16));
            });
            unroll<4>([&](auto r) HAMFLOW_INLINE_LAMBDA { m[r] = merge(m[r], m[r + 4]); });
            store_folded16(out_a + i, merge(m[0], m[2]));
            store_folded16(out_b + i, merge(m[1], m[3]));
        }
    }
};

// For the float messages: the planes are the descriptors' 32-bit halves of words, as wide as the
// floats. Widening the bytes of `Bits` would take more time than counting on all of them.
template <int words>
struct BitsF32 {
    using D = __m512;  // 16 distances, float32
    using F = __m512;
    static constexpr int lanes = 16;
    static constexpr int block = 4;
    static constexpr int columns = 16;
    static constexpr int elem = 4;
    static constexpr int planes = 2 * words;
    static constexpr int f32_parts = 1;

    static HAMFLOW_INLINE std::uint32_t half_of(const std::uint64_t* bits, int p) {
        return static_cast<std::uint32_t>(bits[p / 2] >> (32 * (p % 2)));
    }

    static void build_planes(const std::uint64_t* row, int w, std::uint8_t* out,
                             std::size_t stride) {
        for (int p = 0; p < planes; ++p) {
            auto* plane = reinterpret_cast<std::uint32_t*>(out + p * stride);
            for (int x = 0; x < w; ++x) plane[x] = half_of(row + x * words, p);
        }
    }

    struct Pair {
        std::uint32_t half[2][planes];
        void set(const std::uint64_t* a, const std::uint64_t* b) {
            for (int p = 0; p < planes; ++p) {
                half[0][p] = half_of(a, p);
                half[1][p] = half_of(b, p);
            }
        }
    };

    // Where `distances` finds its targets: see TargetPlanes in bits_tiles.inl.
    static constexpr int plane_stride = 2 * lanes * elem;
    static constexpr int vector_stride = planes * plane_stride;

    template <int N>
    static HAMFLOW_INLINE void distances(const Pair& pair, const std::uint8_t* t, D* da, D* db) {
        __m512i a[planes], b[planes];
        unroll<planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            a[p] = _mm512_set1_epi32(static_cast<int>(pair.half[0][p]));
            b[p] = _mm512_set1_epi32(static_cast<int>(pair.half[1][p]));
        });
        unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
            __m512i na, nb;
            unroll<planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                const __m512i q = load_once(t + p * plane_stride + j * vector_stride);
                const __m512i ca = _mm512_popcnt_epi32(_mm512_xor_si512(q, a[p]));
                const __m512i cb = _mm512_popcnt_epi32(_mm512_xor_si512(q, b[p]));
                na = p ? _mm512_add_epi32(na, ca) : ca;
                nb = p ? _mm512_add_epi32(nb, cb) : cb;
            });
            da[j] = _mm512_cvtepi32_ps(na);
            db[j] = _mm512_cvtepi32_ps(nb);
        });
    }

    static constexpr int lanes32 = 16;
    static HAMFLOW_INLINE F load32(const float* p) { return _mm512_load_ps(p); }
    static HAMFLOW_INLINE void store32(float* p, F v) { _mm512_store_ps(p, v); }
    static HAMFLOW_INLINE F set1_32(float x) { return _mm512_set1_ps(x); }
    static HAMFLOW_INLINE F min32(F a, F b) { return _mm512_min_ps(a, b); }
    static HAMFLOW_INLINE F sub32(F a, F b) { return _mm512_sub_ps(a, b); }
    static constexpr float f32_offset = 0.0f;
    static HAMFLOW_INLINE void to_f32(D d, F* out) { out[0] = d; }
    static int position32(int lane) { return lane; }
    static HAMFLOW_INLINE float horizontal_min32(F v) {
        const __m256 h = _mm256_min_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        __m128 m = _mm_min_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
        m = _mm_min_ps(m, _mm_movehl_ps(m, m));
        m = _mm_min_ss(m, _mm_movehdup_ps(m));
        return _mm_cvtss_f32(m);
    }
};

// For the scalar products of float descriptors: a register tile of rows x vectors sums.
struct Floats {
    using F = __m512;
    static constexpr int width = 16;
    static constexpr int rows = 8, vectors = 3;
    static HAMFLOW_INLINE F zero() { return _mm512_setzero_ps(); }
    static HAMFLOW_INLINE F loadu(const float* p) { return _mm512_loadu_ps(p); }
    static HAMFLOW_INLINE void storeu(float* p, F v) { _mm512_storeu_ps(p, v); }
    static HAMFLOW_INLINE F set1(float x) { return _mm512_set1_ps(x); }
    static HAMFLOW_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static HAMFLOW_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
    static HAMFLOW_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
    // a > b ? x : y
    static HAMFLOW_INLINE F where_greater(F a, F b, F x, F y) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
    }
};

}  // namespace avx512
}  // namespace hamflow
