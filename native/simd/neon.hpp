// AArch64: 16 labels per vector, Hamming distances by cnt on the descriptors' bytes, eight of each
// word. As in avx2.hpp, the pixels (x, y) and (x, y + 1) share every load of targets.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "common.hpp"

namespace hamflow {
namespace neon {

template <int words>
struct Bits {
    using V = uint8x16_t;
    using D = V;
    using F = float32x4_t;
    static constexpr int lanes = 16;
    static constexpr int block = 4;
    static constexpr int columns = 32;
    static constexpr bool pixels_abreast = false;
    static constexpr int elem = 1;
    static constexpr int planes = 8 * words;
    static constexpr int f32_parts = 4;

    static HAMFLOW_INLINE std::uint8_t byte_of(const std::uint64_t* bits, int p) {
        return static_cast<std::uint8_t>(bits[p / 8] >> (8 * (p % 8)));
    }

    static void build_planes(const std::uint64_t* row, int w, std::uint8_t* out,
                             std::size_t stride) {
        for (int p = 0; p < planes; ++p) {
            std::uint8_t* plane = out + p * stride;
            for (int x = 0; x < w; ++x) plane[x] = byte_of(row + x * words, p);
        }
    }

    // The bytes of both pixels as whole vectors: a load that replicates one byte would also
    // take a slot of the vector pipes, which bound this kernel.
    struct Pair {
        alignas(16) std::uint8_t byte[planes][2][lanes];

        void set(const std::uint64_t* a, const std::uint64_t* b) {
            for (int p = 0; p < planes; ++p) {
                store(byte[p][0], set1(byte_of(a, p)));
                store(byte[p][1], set1(byte_of(b, p)));
            }
        }
    };

    // Where `distances` finds its targets: see TargetPlanes in bits_tiles.inl.
    static constexpr int plane_stride = 2 * lanes * elem;
    static constexpr int vector_stride = planes * plane_stride;

    // Distances of the pair's two pixels to N x 16 targets; `t` points into their planes.
    template <int N>
    static HAMFLOW_INLINE void distances(const Pair& pair, const std::uint8_t* t, V* da, V* db) {
        unroll<planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            const V a = load(pair.byte[p][0]), b = load(pair.byte[p][1]);
            unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                const V q = load(t + p * plane_stride + j * vector_stride);
                const V ca = vcntq_u8(veorq_u8(q, a)), cb = vcntq_u8(veorq_u8(q, b));
                da[j] = p ? vaddq_u8(da[j], ca) : ca;
                db[j] = p ? vaddq_u8(db[j], cb) : cb;
            });
            // GCC otherwise reorders across planes and spills.
            unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                V &a_sum = da[j], &b_sum = db[j];  // Clang captures nothing for an asm
                asm volatile("" : "+w"(a_sum), "+w"(b_sum));
            });
        });
    }

    // --- uint8 -------------------------------------------------------------------------------
    static HAMFLOW_INLINE V load(const std::uint8_t* p) { return vld1q_u8(p); }
    static HAMFLOW_INLINE void store(std::uint8_t* p, V v) { vst1q_u8(p, v); }
    static HAMFLOW_INLINE V set1(std::uint8_t x) { return vdupq_n_u8(x); }
    static HAMFLOW_INLINE V min(V a, V b) { return vminq_u8(a, b); }
    static HAMFLOW_INLINE V bit_or(V a, V b) { return vorrq_u8(a, b); }

    // Minima of the tile's 2 x 32 vectors, rows[2 i + p], to out_p[i].
    static HAMFLOW_INLINE void row_minima(const std::uint8_t* rows, std::uint8_t* out_a,
                                          std::uint8_t* out_b) {
        for (int i = 0; i < columns; i += 16) {
            store(out_a + i, minima_of_16(rows + 2 * i * lanes));
            store(out_b + i, minima_of_16(rows + (2 * i + 1) * lanes));
        }
    }
    static HAMFLOW_INLINE V minima_of_16(const std::uint8_t* rows) {
        V m[8];
        unroll<8>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            m[i] = vpminq_u8(load(rows + 4 * i * lanes), load(rows + (4 * i + 2) * lanes));
        });
        unroll<4>([&](auto i) HAMFLOW_INLINE_LAMBDA { m[i] = vpminq_u8(m[2 * i], m[2 * i + 1]); });
        return vpminq_u8(vpminq_u8(m[0], m[1]), vpminq_u8(m[2], m[3]));
    }

    // --- the running argmin ------------------------------------------------------------------
    // best = min(best, d) and, where d is strictly smaller, index = k (int16).
    static HAMFLOW_INLINE void keep_min(std::uint8_t* best, std::int16_t* index, V d,
                                        std::int16_t k) {
        const V old = load(best);
        const int8x16_t less = vreinterpretq_s8_u8(vcltq_u8(d, old));
        store(best, min(old, d));
        const int16x8_t kk = vdupq_n_s16(k);
        const uint16x8_t lo = vreinterpretq_u16_s16(vmovl_s8(vget_low_s8(less)));
        const uint16x8_t hi = vreinterpretq_u16_s16(vmovl_high_s8(less));
        vst1q_s16(index, vbslq_s16(lo, kk, vld1q_s16(index)));
        vst1q_s16(index + 8, vbslq_s16(hi, kk, vld1q_s16(index + 8)));
    }
    static int index_position(int lane) { return lane; }
    static HAMFLOW_INLINE void keep_min(V& best, V& index, V d, V k) {
        index = vbslq_u8(vcltq_u8(d, best), k, index);
        best = min(best, d);
    }

    // --- int16 -------------------------------------------------------------------------------
    static constexpr int lanes16 = 8;
    static int position16(int lane) { return lane; }
    static HAMFLOW_INLINE int16x8_t s16(V v) { return vreinterpretq_s16_u8(v); }
    static HAMFLOW_INLINE V u8(int16x8_t v) { return vreinterpretq_u8_s16(v); }
    static HAMFLOW_INLINE V load16(const std::int16_t* p) { return u8(vld1q_s16(p)); }
    static HAMFLOW_INLINE void store16(std::int16_t* p, V v) { vst1q_s16(p, s16(v)); }
    static HAMFLOW_INLINE V set1_16(std::int16_t x) { return u8(vdupq_n_s16(x)); }
    static HAMFLOW_INLINE V max16(V a, V b) { return u8(vmaxq_s16(s16(a), s16(b))); }
    // step * distance of the first (last) eight labels; step <= 128.
    struct Scale {
        V factor;
        explicit Scale(int step) { factor = vdupq_n_u8(static_cast<std::uint8_t>(step)); }
    };
    static HAMFLOW_INLINE V scaled16(V d, const Scale& s, int half) {
        return vreinterpretq_u8_u16(half ? vmull_high_u8(d, s.factor)
                                         : vmull_u8(vget_low_u8(d), vget_low_u8(s.factor)));
    }
    // x - step * distance, saturating.
    static HAMFLOW_INLINE V minus_scaled16(V x, V scaled) {
        return u8(vqsubq_s16(s16(x), s16(scaled)));
    }
    static HAMFLOW_INLINE std::int16_t horizontal_max16(V v) { return vmaxvq_s16(s16(v)); }
    // Maxima of the vectors rows[2 i + p], i < n, to out_p[i].
    static HAMFLOW_INLINE void row_maxima16(const std::int16_t* rows, int n, std::int16_t* out_a,
                                            std::int16_t* out_b) {
        for (int i = 0; i < n; ++i, rows += 2 * lanes16) {
            out_a[i] = horizontal_max16(load16(rows));
            out_b[i] = horizontal_max16(load16(rows + lanes16));
        }
    }

    // --- float32 -----------------------------------------------------------------------------
    static constexpr int lanes32 = 4;
    static HAMFLOW_INLINE F load32(const float* p) { return vld1q_f32(p); }
    static HAMFLOW_INLINE void store32(float* p, F v) { vst1q_f32(p, v); }
    static HAMFLOW_INLINE F set1_32(float x) { return vdupq_n_f32(x); }
    static HAMFLOW_INLINE F min32(F a, F b) { return vminq_f32(a, b); }
    static HAMFLOW_INLINE F sub32(F a, F b) { return vsubq_f32(a, b); }
    // 128 + distance: the distance's byte put into the mantissa of 128.0f. A distance of 128 sets
    // the lowest bit of the exponent, which makes it 256.
    static constexpr float f32_offset = 128.0f;
    static HAMFLOW_INLINE void to_f32(V d, F* out) {
        const V exponent = vdupq_n_u8(0x43);
        const uint16x8_t zero = vdupq_n_u16(0);
        const uint16x8_t lo = vreinterpretq_u16_u8(vzip1q_u8(d, exponent));
        const uint16x8_t hi = vreinterpretq_u16_u8(vzip2q_u8(d, exponent));
        out[0] = vreinterpretq_f32_u16(vzip1q_u16(zero, lo));
        out[1] = vreinterpretq_f32_u16(vzip2q_u16(zero, lo));
        out[2] = vreinterpretq_f32_u16(vzip1q_u16(zero, hi));
        out[3] = vreinterpretq_f32_u16(vzip2q_u16(zero, hi));
    }
    static int position32(int lane) { return lane; }
    static HAMFLOW_INLINE float horizontal_min32(F v) { return vminvq_f32(v); }
};

// For the float messages: narrower tiles, whose running minima still fit the first-level cache.
template <int words>
struct BitsF32 : Bits<words> {
    static constexpr int columns = 16;
};

// For the scalar products of float descriptors: a register tile of rows x vectors sums.
struct Floats {
    using F = float32x4_t;
    static constexpr int width = 4;
    static constexpr int rows = 6, vectors = 4;
    static HAMFLOW_INLINE F zero() { return vdupq_n_f32(0.0f); }
    static HAMFLOW_INLINE F loadu(const float* p) { return vld1q_f32(p); }
    static HAMFLOW_INLINE void storeu(float* p, F v) { vst1q_f32(p, v); }
    static HAMFLOW_INLINE F set1(float x) { return vdupq_n_f32(x); }
    static HAMFLOW_INLINE F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
    static HAMFLOW_INLINE F add(F a, F b) { return vaddq_f32(a, b); }
    static HAMFLOW_INLINE F max(F a, F b) { return vmaxq_f32(a, b); }
    // a > b ? x : y
    static HAMFLOW_INLINE F where_greater(F a, F b, F x, F y) {
        return vbslq_f32(vcgtq_f32(a, b), x, y);
    }
};

}  // namespace neon
}  // namespace hamflow
