// AVX2: 32 labels per vector, Hamming distances by table look-up.
//
// AVX2 has no popcount, but a pixel's descriptor is fixed while thousands of targets pass by. So
// the pixel turns into tables T[x] = popcount(a_nibble ^ x), and one vpshufb with the targets'
// nibbles as indices yields 32 partial distances. A table's bytes hold two counts, of the pixel
// (x, y) in the low and of (x, y + 1) in the high half: both see the same targets in the same
// lanes, so each look-up serves 64 entries of the 4D cost. Four tables of 4 + 4 + 4 + 3 bits sum
// to at most 15 and cannot overflow a half; 4 x 15 bits and a last nibble make a word of 64.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "common.hpp"

namespace hamflow {
namespace avx2 {

template <int words>
struct Bits {
    using V = __m256i;                   // 32 distances, uint8
    using D = V;                         // what `distances` yields
    using F = __m256;                    // 8 distances, float32
    static constexpr int lanes = 32;     // labels per vector
    static constexpr int block = 4;      // vectors that share a load of the tables
    static constexpr int columns = 32;   // of a tile
    static constexpr bool pixels_abreast = false;
    static constexpr int elem = 1;       // bytes of one label in one plane
    static constexpr int word_planes = 17, word_tables = 18;
    static constexpr int planes = word_planes * words;
    static constexpr int f32_parts = 4;  // float vectors per distance vector

    static constexpr int plane_shift(int p) { return p == 16 ? 60 : (p / 4) * 15 + (p % 4) * 4; }
    static constexpr int plane_mask(int p) { return p < 16 && p % 4 == 3 ? 7 : 15; }

    static void build_planes(const std::uint64_t* row, int w, std::uint8_t* out,
                             std::size_t stride) {
        for (int p = 0; p < planes; ++p) {
            const int shift = plane_shift(p % word_planes);
            const std::uint64_t mask = static_cast<std::uint64_t>(plane_mask(p % word_planes));
            const std::uint64_t* word = row + p / word_planes;
            std::uint8_t* plane = out + p * stride;
            for (int x = 0; x < w; ++x)
                plane[x] = static_cast<std::uint8_t>((word[x * words] >> shift) & mask);
        }
    }

    // The look-up tables of the pixels (x, y) and (x, y + 1).
    struct Pair {
        alignas(16) std::uint8_t table[word_tables * words][16];

        void set(const std::uint64_t* a, const std::uint64_t* b) {
            for (int k = 0; k < words; ++k) set_word(a[k], b[k], table + word_tables * k);
        }

       private:
        static void set_word(std::uint64_t a, std::uint64_t b, std::uint8_t (*table)[16]) {
            const __m128i iota =
                _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            const __m128i count =
                _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
            const __m128i three = _mm_set1_epi8(7);
            const auto counts = [&](std::uint64_t bits, int p) {
                const auto nibble =
                    static_cast<char>((bits >> plane_shift(p)) & plane_mask(p));
                __m128i x = _mm_xor_si128(iota, _mm_set1_epi8(nibble));
                if (plane_mask(p) == 7) x = _mm_and_si128(x, three);
                return _mm_shuffle_epi8(count, x);
            };
            for (int p = 0; p < 16; ++p) {
                // Counts are at most 4, so a 16-bit shift by 4 stays within its byte.
                const __m128i t =
                    _mm_or_si128(counts(a, p), _mm_slli_epi16(counts(b, p), 4));
                _mm_store_si128(reinterpret_cast<__m128i*>(table[p]), t);
            }
            _mm_store_si128(reinterpret_cast<__m128i*>(table[16]), counts(a, 16));
            _mm_store_si128(reinterpret_cast<__m128i*>(table[17]), counts(b, 16));
        }
    };

    // Where `distances` finds its targets: see TargetPlanes in bits_tiles.inl.
    static constexpr int plane_stride = 2 * lanes * elem;
    static constexpr int vector_stride = planes * plane_stride;

    static HAMFLOW_INLINE V broadcast_table(const std::uint8_t* p) {
        return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static HAMFLOW_INLINE V load_index(const std::uint8_t* p) {
        return _mm256_loadu_si256(reinterpret_cast<const V*>(p));
    }

    // Distances of the pair's two pixels to N x 32 targets; `t` points into their planes.
    template <int N>
    static HAMFLOW_INLINE void distances(const Pair& pair, const std::uint8_t* t, V* da, V* db) {
        const V low = _mm256_set1_epi8(15);
        V sum[N], high[N];
        unroll<4 * words>([&](auto g) HAMFLOW_INLINE_LAMBDA {
            constexpr int first = (g / 4) * word_planes + 4 * (g % 4);
            const auto* table = pair.table + (g / 4) * word_tables + 4 * (g % 4);
            const V t0 = broadcast_table(table[0]);
            const V t1 = broadcast_table(table[1]);
            const V t2 = broadcast_table(table[2]);
            const V t3 = broadcast_table(table[3]);
            unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                const std::uint8_t* q = t + first * plane_stride + j * vector_stride;
                const V s = _mm256_add_epi8(
                    _mm256_add_epi8(_mm256_shuffle_epi8(t0, load_index(q)),
                                    _mm256_shuffle_epi8(t1, load_index(q + plane_stride))),
                    _mm256_add_epi8(_mm256_shuffle_epi8(t2, load_index(q + 2 * plane_stride)),
                                    _mm256_shuffle_epi8(t3, load_index(q + 3 * plane_stride))));
                const V h = _mm256_and_si256(_mm256_srli_epi16(s, 4), low);
                sum[j] = g ? _mm256_add_epi8(sum[j], s) : s;
                high[j] = g ? _mm256_add_epi8(high[j], h) : h;
                // GCC 12 otherwise reorders across groups and spills.
                asm volatile("" : "+x"(sum[j]), "+x"(high[j]));
            });
        });
        unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
            // sum = low + 16 high modulo 256, and low < 256: subtracting gives it back exactly.
            const V high16 = _mm256_andnot_si256(low, _mm256_slli_epi16(high[j], 4));
            da[j] = _mm256_sub_epi8(sum[j], high16);
            db[j] = high[j];
        });
        unroll<words>([&](auto word) HAMFLOW_INLINE_LAMBDA {
            const V ta = broadcast_table(pair.table[word * word_tables + 16]);
            const V tb = broadcast_table(pair.table[word * word_tables + 17]);
            unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                const V q =
                    load_index(t + (word * word_planes + 16) * plane_stride + j * vector_stride);
                da[j] = _mm256_add_epi8(da[j], _mm256_shuffle_epi8(ta, q));
                db[j] = _mm256_add_epi8(db[j], _mm256_shuffle_epi8(tb, q));
            });
        });
    }

    // --- uint8 -------------------------------------------------------------------------------
    static HAMFLOW_INLINE V load(const std::uint8_t* p) {
        return _mm256_load_si256(reinterpret_cast<const V*>(p));
    }
    static HAMFLOW_INLINE void store(std::uint8_t* p, V v) {
        _mm256_store_si256(reinterpret_cast<V*>(p), v);
    }
    static HAMFLOW_INLINE V set1(std::uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
    static HAMFLOW_INLINE V min(V a, V b) { return _mm256_min_epu8(a, b); }
    static HAMFLOW_INLINE V bit_or(V a, V b) { return _mm256_or_si256(a, b); }

    // Minima of the tile's 2 x 32 vectors, rows[2 i + p], to out_p[i].
    static HAMFLOW_INLINE void row_minima(const std::uint8_t* rows, std::uint8_t* out_a,
                                          std::uint8_t* out_b) {
        row_minima_16(rows, out_a, out_b);
        row_minima_16(rows + 32 * lanes, out_a + 16, out_b + 16);
    }
    // Minima of 32 vectors, rows[2 i + p], to out[p][i]: a transposing tree, three instructions
    // per vector, where a horizontal minimum for each would take twice as many.
    static HAMFLOW_INLINE void row_minima_16(const std::uint8_t* rows, std::uint8_t* out_a,
                                             std::uint8_t* out_b) {
        V m[16];
        const auto merge = [](V a, V b) HAMFLOW_INLINE_LAMBDA {
            return min(_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
        };
        unroll<16>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            m[i] = merge(load(rows + 32 * i), load(rows + 32 * (i + 16)));
        });
        unroll<8>([&](auto i) HAMFLOW_INLINE_LAMBDA { m[i] = merge(m[i], m[i + 8]); });
        unroll<4>([&](auto i) HAMFLOW_INLINE_LAMBDA { m[i] = merge(m[i], m[i + 4]); });
        m[0] = merge(m[0], m[2]);
        m[1] = merge(m[1], m[3]);
        const auto fold = [](V v) {
            return _mm_min_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        };
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out_a), fold(m[0]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out_b), fold(m[1]));
    }

    // --- the running argmin ------------------------------------------------------------------
    // best = min(best, d) and, where d is strictly smaller, index = k (int16, in the order of
    // index_position).
    static HAMFLOW_INLINE void keep_min(std::uint8_t* best, std::int16_t* index, V d,
                                        std::int16_t k) {
        const V old = load(best), least = min(old, d);
        const V stays = _mm256_cmpeq_epi8(old, least);  // no signed comparison: 128 is a distance
        store(best, least);
        const V kk = _mm256_set1_epi16(k);
        V* at = reinterpret_cast<V*>(index);
        _mm256_store_si256(at, _mm256_blendv_epi8(kk, _mm256_load_si256(at),
                                                  _mm256_unpacklo_epi8(stays, stays)));
        _mm256_store_si256(at + 1, _mm256_blendv_epi8(kk, _mm256_load_si256(at + 1),
                                                      _mm256_unpackhi_epi8(stays, stays)));
    }
    static int index_position(int lane) {
        return ((lane >> 3) & 1) * 16 + (lane >> 4) * 8 + (lane & 7);
    }
    static HAMFLOW_INLINE void keep_min(V& best, V& index, V d, V k) {
        const V least = min(best, d);
        index = _mm256_blendv_epi8(k, index, _mm256_cmpeq_epi8(best, least));
        best = least;
    }

    // --- int16: even labels in the first half, odd ones in the second ---------------------------
    static constexpr int lanes16 = 16;
    static int position16(int lane) { return (lane & 1) * 16 + (lane >> 1); }
    static HAMFLOW_INLINE V load16(const std::int16_t* p) {
        return _mm256_load_si256(reinterpret_cast<const V*>(p));
    }
    static HAMFLOW_INLINE void store16(std::int16_t* p, V v) {
        _mm256_store_si256(reinterpret_cast<V*>(p), v);
    }
    static HAMFLOW_INLINE V set1_16(std::int16_t x) { return _mm256_set1_epi16(x); }
    static HAMFLOW_INLINE V max16(V a, V b) { return _mm256_max_epi16(a, b); }
    // -step * distance of the even (odd) labels; step <= 128.
    struct Scale {
        V even, odd;
        explicit Scale(int step) {
            even = _mm256_set1_epi16(static_cast<short>((-step) & 0xff));
            odd = _mm256_slli_epi16(even, 8);
        }
    };
    static HAMFLOW_INLINE V scaled16(V d, const Scale& s, int half) {
        return _mm256_maddubs_epi16(d, half ? s.odd : s.even);
    }
    // x - step * distance, saturating.
    static HAMFLOW_INLINE V minus_scaled16(V x, V scaled) { return _mm256_adds_epi16(x, scaled); }
    // The maxima of the two 128-bit halves.
    static HAMFLOW_INLINE void store_folded16(std::int16_t* p, V v) {
        const __m128i m =
            _mm_max_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), m);
    }
    // Maxima of the vectors rows[2 i + p], i < n, to out_p[i]: eight columns at a time by a
    // transposing tree; n is rounded up, the rows beyond it are there.
    static HAMFLOW_INLINE void row_maxima16(const std::int16_t* rows, int n, std::int16_t* out_a,
                                            std::int16_t* out_b) {
        const auto merge = [](V a, V b) HAMFLOW_INLINE_LAMBDA {
            return max16(_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
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

    // --- float32 -----------------------------------------------------------------------------
    static constexpr int lanes32 = 8;
    static HAMFLOW_INLINE F load32(const float* p) { return _mm256_load_ps(p); }
    static HAMFLOW_INLINE void store32(float* p, F v) { _mm256_store_ps(p, v); }
    static HAMFLOW_INLINE F set1_32(float x) { return _mm256_set1_ps(x); }
    static HAMFLOW_INLINE F min32(F a, F b) { return _mm256_min_ps(a, b); }
    static HAMFLOW_INLINE F sub32(F a, F b) { return _mm256_sub_ps(a, b); }
    // 128 + distance: the distance's byte put into the mantissa of 128.0f. A distance of 128 sets
    // the lowest bit of the exponent, which makes it 256.
    static constexpr float f32_offset = 128.0f;
    static HAMFLOW_INLINE void to_f32(V d, F* out) {
        const V exponent = _mm256_set1_epi8(0x43);
        const V zero = _mm256_setzero_si256();
        const V lo = _mm256_unpacklo_epi8(d, exponent);
        const V hi = _mm256_unpackhi_epi8(d, exponent);
        out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, lo));
        out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, lo));
        out[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, hi));
        out[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, hi));
    }
    static int position32(int lane) {
        return ((lane >> 2) & 3) * 8 + (lane >> 4) * 4 + (lane & 3);
    }
    static HAMFLOW_INLINE float horizontal_min32(F v) {
        __m128 m = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        m = _mm_min_ps(m, _mm_movehl_ps(m, m));
        m = _mm_min_ss(m, _mm_movehdup_ps(m));
        return _mm_cvtss_f32(m);
    }
};

// For the float messages: narrower tiles, whose running minima still fit the first-level cache.
template <int words>
struct BitsF32 : Bits<words> {
    static constexpr int columns = 16;
};

// For the scalar products of float descriptors: a register tile of rows x vectors sums.
struct Floats {
    using F = __m256;
    static constexpr int width = 8;
    static constexpr int rows = 6, vectors = 2;
    static HAMFLOW_INLINE F zero() { return _mm256_setzero_ps(); }
    static HAMFLOW_INLINE F loadu(const float* p) { return _mm256_loadu_ps(p); }
    static HAMFLOW_INLINE void storeu(float* p, F v) { _mm256_storeu_ps(p, v); }
    static HAMFLOW_INLINE F set1(float x) { return _mm256_set1_ps(x); }
    static HAMFLOW_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
    static HAMFLOW_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
    static HAMFLOW_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
    // a > b ? x : y
    static HAMFLOW_INLINE F where_greater(F a, F b, F x, F y) {
        return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
    }
};

}  // namespace avx2
}  // namespace hamflow
