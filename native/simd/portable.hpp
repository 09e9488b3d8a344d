// Plain C++: 16 labels per vector, for machines that none of the other files knows (and for x86
// processors without AVX2).
//
// Without a popcount instruction bits are counted as in a carry-save adder: seven planes of one
// byte per label are added bitwise to three (weights 1, 2 and 4), and only these are summed
// within each byte. The pixel's bits a and the targets' t enter as x = a ^ t, and the parts of
// the adders that are linear over xor need no arithmetic at all: with t0 ^ t1 ^ t2 as a plane of
// its own, the sum of three is one xor. Hence 11 planes instead of 8.
//
// The compilers' generic vector types are translated to what the machine has.
#pragma once

#include <cstdint>
#include <cstring>

#include "common.hpp"

namespace hamflow {
namespace portable {

typedef std::uint64_t U64 HAMFLOW_VECTOR(16);
typedef std::uint32_t U32 HAMFLOW_VECTOR(16);
typedef std::uint8_t U8 HAMFLOW_VECTOR(16);
typedef std::uint16_t U16 HAMFLOW_VECTOR(16);
typedef std::int16_t S16 HAMFLOW_VECTOR(16);
typedef float F32 HAMFLOW_VECTOR(16);

// Operations on vectors of bytes; the carrier is U64, as x86 has no shifts of bytes.
struct Vector {
    using V = U64;
    using F = F32;
    static HAMFLOW_INLINE V load(const void* p) {
        V v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static HAMFLOW_INLINE void store(void* p, V v) { std::memcpy(p, &v, sizeof v); }
    static HAMFLOW_INLINE V set1(std::uint8_t x) {
        const std::uint64_t w = 0x0101010101010101u * x;
        return V{w, w};
    }
    static HAMFLOW_INLINE V add8(V a, V b) { return V(U8(a) + U8(b)); }
    static HAMFLOW_INLINE V sub8(V a, V b) { return V(U8(a) - U8(b)); }
    static HAMFLOW_INLINE V min(V a, V b) {
        const U8 x = U8(a), y = U8(b);
        return V(x < y ? x : y);
    }
    static HAMFLOW_INLINE V less(V a, V b) { return V(U8(a) < U8(b)); }

    static HAMFLOW_INLINE V set1_16(std::int16_t x) {
        return V(S16{x, x, x, x, x, x, x, x});
    }
    static HAMFLOW_INLINE V add16(V a, V b) { return V(S16(a) + S16(b)); }
    static HAMFLOW_INLINE V sub16(V a, V b) { return V(S16(a) - S16(b)); }
    static HAMFLOW_INLINE V mul16(V a, V b) { return V(S16(a) * S16(b)); }
    static HAMFLOW_INLINE V max16(V a, V b) {
        const S16 x = S16(a), y = S16(b);
        return V(x > y ? x : y);
    }
    // The even (odd) bytes, each extended to 16 bits: by its sign, as masks are, or by zeros.
    static HAMFLOW_INLINE V even_masks16(V a) { return V((S16(a) << 8) >> 8); }
    static HAMFLOW_INLINE V odd_masks16(V a) { return V(S16(a) >> 8); }
    static HAMFLOW_INLINE V even16(V a) { return a & set1_16(0xff); }
    static HAMFLOW_INLINE V odd16(V a) { return V(U16(a) >> 8); }

    static HAMFLOW_INLINE F load32(const float* p) {
        F v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static HAMFLOW_INLINE void store32(float* p, F v) { std::memcpy(p, &v, sizeof v); }
    static HAMFLOW_INLINE F set1_32(float x) { return F{x, x, x, x}; }
    static HAMFLOW_INLINE F sub32(F a, F b) { return a - b; }
    static HAMFLOW_INLINE F min32(F a, F b) { return a < b ? a : b; }
    // 128 + the bytes 0, 4, 8, 12 (1, 5, ..): a byte put into the mantissa of 128.0f. One of 128,
    // and no larger one, is right, too: it sets the lowest bit of the exponent.
    static HAMFLOW_INLINE void to_f32(V d, F* out) {
        const U32 mask = {0xff0000u, 0xff0000u, 0xff0000u, 0xff0000u};
        const U32 base = {0x43000000u, 0x43000000u, 0x43000000u, 0x43000000u};
        const U32 x = U32(d);
        out[0] = F(((x << 16) & mask) | base);
        out[1] = F(((x << 8) & mask) | base);
        out[2] = F((x & mask) | base);
        out[3] = F(((x >> 8) & mask) | base);
    }

    // Minima of `rows`, 16 vectors 32 bytes apart, to out[0..15]: a transposing tree.
    static HAMFLOW_INLINE void minima_of_16(const std::uint8_t* rows, std::uint8_t* out) {
        V m[8];
        const auto merge = [](V a, V b, int shift, std::uint64_t mask) HAMFLOW_INLINE_LAMBDA {
            const V low = V{mask, mask};
            return min((a & low) | ((b & low) << shift), ((a >> shift) & low) | (b & ~low));
        };
        unroll<8>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            m[i] = merge(load(rows + 64 * i), load(rows + 64 * i + 32), 8, 0x00ff00ff00ff00ffu);
        });
        unroll<4>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            m[i] = merge(m[2 * i], m[2 * i + 1], 16, 0x0000ffff0000ffffu);
        });
        const V a = merge(m[0], m[1], 32, 0x00000000ffffffffu);
        const V b = merge(m[2], m[3], 32, 0x00000000ffffffffu);
        store(out, min(V{a[0], b[0]}, V{a[1], b[1]}));
    }
};

template <int words>
struct Bits : Vector {
    using D = V;
    static constexpr int lanes = 16;
    static constexpr int block = 4;
    static constexpr int columns = 32;
    static constexpr bool pixels_abreast = false;
    static constexpr int elem = 1;
    static constexpr int word_planes = 11;
    static constexpr int planes = word_planes * words;
    static constexpr int f32_parts = 4;

    // Which bytes of the descriptor a plane is the xor of: what `count_bits` asks for.
    static constexpr int plane_bytes(int p) {
        constexpr int of[word_planes] = {
            1, 1 | 2, 1 | 4,                       // the carry of the bytes 0, 1, 2
            8, 8 | 16, 8 | 32,                     // that of 3, 4, 5
            1 | 2 | 4, 63, 1 | 2 | 4 | 64, 127,    // that of these two sums and 6; the sum of all
            128,                                   // byte 7
        };
        return of[p];
    }
    static HAMFLOW_INLINE std::uint8_t plane_value(const std::uint64_t* bits, int p) {
        std::uint64_t x = 0;
        for (int k = 0; k < 8; ++k)
            if (plane_bytes(p % word_planes) >> k & 1) x ^= bits[p / word_planes] >> (8 * k);
        return static_cast<std::uint8_t>(x);
    }

    static void build_planes(const std::uint64_t* row, int w, std::uint8_t* out,
                             std::size_t stride) {
        unroll<planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            std::uint8_t* plane = out + p * stride;
            for (int x = 0; x < w; ++x) plane[x] = plane_value(row + x * words, p);
        });
    }

    struct Pair {
        alignas(16) std::uint8_t byte[2][planes][lanes];

        void set(const std::uint64_t* a, const std::uint64_t* b) {
            unroll<planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                store(byte[0][p], set1(plane_value(a, p)));
                store(byte[1][p], set1(plane_value(b, p)));
            });
        }
    };

    // Where `distances` finds its targets: see TargetPlanes in bits_tiles.inl.
    static constexpr int plane_stride = 2 * lanes * elem;
    static constexpr int vector_stride = planes * plane_stride;

    // The number of ones in a word of which x(p) = plane p.
    template <class Plane>
    static HAMFLOW_INLINE V count_bits(const Plane& x) {
        const V m1 = set1(0x55), m2 = set1(0x33), m4 = set1(0x0f);
        // The carry of a + b + c is a ^ ((a ^ b) & (a ^ c)).
        const V c0 = x(0) ^ (x(1) & x(2));
        const V c1 = x(3) ^ (x(4) & x(5));
        const V c2 = x(6) ^ (x(7) & x(8));
        const V one = x(9);
        const V c01 = c0 ^ c1;
        const V two = c01 ^ c2;
        const V four = c0 ^ (c01 & (c0 ^ c2));
        // one + 2 two <= 3 for the even and the odd bits, in fields of two bits.
        const V even = (one & m1) | ((two & m1) << 1);
        const V odd = ((one >> 1) & m1) | (two & ~m1);
        const V sum4 = add8(add8(even & m2, (even >> 2) & m2), add8(odd & m2, (odd >> 2) & m2));
        const V f2 = sub8(four, (four >> 1) & m1);
        const V f4 = add8(f2 & m2, (f2 >> 2) & m2);
        const V last = x(10);
        const V l2 = sub8(last, (last >> 1) & m1);
        const V l4 = add8(l2 & m2, (l2 >> 2) & m2);
        const V f8 = add8(f4, f4 >> 4) & m4;
        const V l8 = add8(l4, l4 >> 4) & m4;
        const V sum8 = add8(sum4 & m4, (sum4 >> 4) & m4);
        return add8(add8(sum8, l8), f8 << 2);
    }

    // Distances of the pair's two pixels to N x 16 targets; `t` points into their planes.
    template <int N>
    static HAMFLOW_INLINE void distances(const Pair& pair, const std::uint8_t* t, V* da, V* db) {
        unroll<N>([&](auto j) HAMFLOW_INLINE_LAMBDA {
            const std::uint8_t* q = t + j * vector_stride;
            const auto count = [&](const std::uint8_t (*byte)[lanes], int first)
                HAMFLOW_INLINE_LAMBDA {
                return count_bits([&](int p) HAMFLOW_INLINE_LAMBDA {
                    return load(q + (first + p) * plane_stride) ^ load(byte[first + p]);
                });
            };
            unroll<words>([&](auto word) HAMFLOW_INLINE_LAMBDA {
                const V ca = count(pair.byte[0], word * word_planes);
                da[j] = word ? add8(da[j], ca) : ca;
                const V cb = count(pair.byte[1], word * word_planes);
                db[j] = word ? add8(db[j], cb) : cb;
            });
        });
    }

    // --- uint8 -------------------------------------------------------------------------------
    static HAMFLOW_INLINE V bit_or(V a, V b) { return a | b; }

    // Minima of the tile's 2 x 32 vectors, rows[2 i + p], to out_p[i].
    static HAMFLOW_INLINE void row_minima(const std::uint8_t* rows, std::uint8_t* out_a,
                                          std::uint8_t* out_b) {
        for (int i = 0; i < columns; i += 16) {
            minima_of_16(rows + 2 * i * lanes, out_a + i);
            minima_of_16(rows + (2 * i + 1) * lanes, out_b + i);
        }
    }

    // --- the running argmin ------------------------------------------------------------------
    static HAMFLOW_INLINE V select(V mask, V a, V b) { return (mask & a) | (~mask & b); }
    // best = min(best, d) and, where d is strictly smaller, index = k (int16).
    static HAMFLOW_INLINE void keep_min(std::uint8_t* best, std::int16_t* index, V d,
                                        std::int16_t k) {
        const V old = load(best);
        const V smaller = less(d, old);
        store(best, min(old, d));
        const V kk = set1_16(k);
        store(index, select(even_masks16(smaller), kk, load(index)));
        store(index + 8, select(odd_masks16(smaller), kk, load(index + 8)));
    }
    static int index_position(int lane) { return position16(lane); }
    static HAMFLOW_INLINE void keep_min(V& best, V& index, V d, V k) {
        index = select(less(d, best), k, index);
        best = min(best, d);
    }

    // --- int16: even labels in the first half, odd ones in the second ---------------------------
    static constexpr int lanes16 = 8;
    static int position16(int lane) { return (lane & 1) * 8 + (lane >> 1); }
    static HAMFLOW_INLINE V load16(const std::int16_t* p) { return load(p); }
    static HAMFLOW_INLINE void store16(std::int16_t* p, V v) { store(p, v); }
    // -step * distance of the even (odd) labels; step <= 128.
    struct Scale {
        V factor;
        explicit Scale(int step) { factor = set1_16(static_cast<std::int16_t>(-step)); }
    };
    static HAMFLOW_INLINE V scaled16(V d, const Scale& s, int half) {
        return mul16(half ? odd16(d) : even16(d), s.factor);
    }
    // x - step * distance, saturating; the scaled distance is at most 0.
    static HAMFLOW_INLINE V minus_scaled16(V x, V scaled) {
        return add16(max16(x, sub16(set1_16(-32768), scaled)), scaled);
    }
    static HAMFLOW_INLINE std::int16_t horizontal_max16(V v) {
        std::int16_t x[8];
        store(x, v);
        std::int16_t m = x[0];
        for (int i = 1; i < 8; ++i) m = x[i] > m ? x[i] : m;
        return m;
    }
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
    static constexpr float f32_offset = 128.0f;
    static int position32(int lane) { return (lane & 3) * 4 + (lane >> 2); }
    static HAMFLOW_INLINE float horizontal_min32(F v) {
        float x[4];
        store32(x, v);
        const float a = x[0] < x[1] ? x[0] : x[1], b = x[2] < x[3] ? x[2] : x[3];
        return a < b ? a : b;
    }
};

// For the float messages: narrower tiles, whose running minima still fit the first-level cache.
template <int words>
struct BitsF32 : Bits<words> {
    static constexpr int columns = 16;
};

// For the scalar products of float descriptors: a register tile of rows x vectors sums.
struct Floats {
    using F = Vector::F;
    static constexpr int width = 4;
    static constexpr int rows = 4, vectors = 2;
    static HAMFLOW_INLINE F zero() { return Vector::set1_32(0.0f); }
    static HAMFLOW_INLINE F loadu(const float* p) { return Vector::load32(p); }
    static HAMFLOW_INLINE void storeu(float* p, F v) { Vector::store32(p, v); }
    static HAMFLOW_INLINE F set1(float x) { return Vector::set1_32(x); }
    static HAMFLOW_INLINE F fma(F a, F b, F c) { return a * b + c; }
    static HAMFLOW_INLINE F add(F a, F b) { return a + b; }
    static HAMFLOW_INLINE F max(F a, F b) { return a > b ? a : b; }
    // a > b ? x : y
    static HAMFLOW_INLINE F where_greater(F a, F b, F x, F y) { return a > b ? x : y; }
};

}  // namespace portable
}  // namespace hamflow
