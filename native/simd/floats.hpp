// Sixteen floats at a time, by the vector types of the compiler: one AVX-512 register, two of AVX2,
// four of SSE2 and NEON. Every operation rounds as its scalar form does and sums have one order, so
// that all levels give the same bytes. Internal linkage, as in common.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "common.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace hamflow {
namespace {

constexpr int lanes = 16;
#if defined(__AVX512F__)
constexpr int native_lanes = 16;
#elif defined(__AVX2__)
constexpr int native_lanes = 8;
#else
constexpr int native_lanes = 4;
#endif
constexpr int native_parts = lanes / native_lanes;

typedef float NativeFloats HAMFLOW_VECTOR(4 * native_lanes);
typedef double NativeDoubles HAMFLOW_VECTOR(4 * native_lanes);
typedef std::int32_t NativeInts HAMFLOW_VECTOR(4 * native_lanes);

template <class Native, class Scalar>
struct Pack {
    Native part[native_parts];

    Pack() = default;
    HAMFLOW_INLINE Pack(Scalar value) {
        unroll<native_parts>([&](auto p) HAMFLOW_INLINE_LAMBDA { part[p] = value - Native{}; });
    }
    template <class Make>
    static HAMFLOW_INLINE Pack of(const Make& make) {
        Pack r;
        unroll<native_parts>([&](auto p) HAMFLOW_INLINE_LAMBDA { r.part[p] = make(p); });
        return r;
    }
    static HAMFLOW_INLINE Pack load(const Scalar* from) {
        // Part by part: a copy of the whole would go through memory.
        return of([&](auto p) HAMFLOW_INLINE_LAMBDA {
            Native n;
            std::memcpy(&n, from + p * (sizeof(Native) / sizeof(Scalar)), sizeof n);
            return n;
        });
    }
    HAMFLOW_INLINE void store(Scalar* to) const {
        unroll<native_parts>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            std::memcpy(to + p * (sizeof(Native) / sizeof(Scalar)), &part[p], sizeof(Native));
        });
    }
};
using Floats = Pack<NativeFloats, float>;
using Doubles = Pack<NativeDoubles, double>;  // eight of them
using Ints = Pack<NativeInts, std::int32_t>;

#define HAMFLOW_PACK_OPERATOR(type, op)                                                  \
    HAMFLOW_INLINE type operator op(const type& a, const type& b) {                      \
        return type::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return a.part[p] op b.part[p]; }); \
    }
HAMFLOW_PACK_OPERATOR(Floats, +)
HAMFLOW_PACK_OPERATOR(Floats, -)
HAMFLOW_PACK_OPERATOR(Floats, *)
HAMFLOW_PACK_OPERATOR(Floats, /)
HAMFLOW_PACK_OPERATOR(Doubles, +)
HAMFLOW_PACK_OPERATOR(Doubles, -)
HAMFLOW_PACK_OPERATOR(Doubles, *)
HAMFLOW_PACK_OPERATOR(Doubles, /)
HAMFLOW_PACK_OPERATOR(Ints, &)
HAMFLOW_PACK_OPERATOR(Ints, |)
#undef HAMFLOW_PACK_OPERATOR
// They wrap around, as the bits of a NaN may.
typedef std::uint32_t NativeWords HAMFLOW_VECTOR(4 * native_lanes);
HAMFLOW_INLINE Ints operator+(const Ints& a, const Ints& b) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return (NativeInts)((NativeWords)a.part[p] + (NativeWords)b.part[p]);
    });
}
HAMFLOW_INLINE Ints operator-(const Ints& a, const Ints& b) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return (NativeInts)((NativeWords)a.part[p] - (NativeWords)b.part[p]);
    });
}
template <int count>
HAMFLOW_INLINE Ints shifted_right(const Ints& a) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return a.part[p] >> count; });
}
template <int count>
HAMFLOW_INLINE Ints shifted_left(const Ints& a) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return a.part[p] << count; });
}
HAMFLOW_INLINE Floats& operator+=(Floats& a, const Floats& b) { return a = a + b; }
HAMFLOW_INLINE Doubles& operator+=(Doubles& a, const Doubles& b) { return a = a + b; }

// All bits of a lane are set where it holds.
HAMFLOW_INLINE Ints operator<(const Floats& a, const Floats& b) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return a.part[p] < b.part[p]; });
}
HAMFLOW_INLINE Floats select(const Ints& mask, const Floats& yes, const Floats& no) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return mask.part[p] ? yes.part[p] : no.part[p];
    });
}

// a < b ? a : b and a > b ? a : b are one instruction each on x86, which compilers do not always see.
#if defined(__AVX512F__)
// Not the form without a mask, of which GCC 12 says that it uses something uninitialized.
#define HAMFLOW_EXTREME(name, op, a, b) \
    (NativeFloats)_mm512_mask_##name##_ps((__m512)(a), 0xffff, (__m512)(a), (__m512)(b))
#elif defined(__AVX2__)
#define HAMFLOW_EXTREME(name, op, a, b) (NativeFloats)_mm256_##name##_ps((__m256)(a), (__m256)(b))
#elif defined(__SSE2__)
#define HAMFLOW_EXTREME(name, op, a, b) (NativeFloats)_mm_##name##_ps((__m128)(a), (__m128)(b))
#else
#define HAMFLOW_EXTREME(name, op, a, b) ((a)op(b) ? (a) : (b))
#endif
HAMFLOW_INLINE Floats min(const Floats& a, const Floats& b) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return HAMFLOW_EXTREME(min, <, a.part[p], b.part[p]);
    });
}
HAMFLOW_INLINE Floats max(const Floats& a, const Floats& b) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return HAMFLOW_EXTREME(max, >, a.part[p], b.part[p]);
    });
}
#undef HAMFLOW_EXTREME

HAMFLOW_INLINE Ints as_ints(const Floats& a) {
    return Ints::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return (NativeInts)a.part[p]; });
}
HAMFLOW_INLINE Floats as_floats(const Ints& a) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA { return (NativeFloats)a.part[p]; });
}
HAMFLOW_INLINE Floats abs(const Floats& a) { return as_floats(as_ints(a) & Ints(0x7fffffff)); }

HAMFLOW_INLINE Floats to_floats(const Ints& a) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
        return __builtin_convertvector(a.part[p], NativeFloats);
    });
}

HAMFLOW_INLINE Floats sqrt(const Floats& a) {
    return Floats::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
#if defined(__AVX512F__)
        return (NativeFloats)_mm512_mask_sqrt_ps((__m512)a.part[p], 0xffff, (__m512)a.part[p]);
#elif defined(__AVX2__)
        return (NativeFloats)_mm256_sqrt_ps((__m256)a.part[p]);
#elif defined(__SSE2__)
        return (NativeFloats)_mm_sqrt_ps((__m128)a.part[p]);
#else
        NativeFloats r;
        for (int k = 0; k < native_lanes; ++k) r[k] = __builtin_sqrtf(a.part[p][k]);
        return r;
#endif
    });
}

// Natural logarithm of positive normal numbers, to about two units of the last place: with
// x = 2^e (1 + t), t from -.29 to .41, a polynomial in t.
HAMFLOW_INLINE Floats log(const Floats& a) {
    const Ints bits = as_ints(a);
    // sqrt(1/2) is the lower end of the mantissas.
    const Ints e = shifted_right<23>(bits - Ints(0x3f3504f3));
    const Floats t = as_floats(bits - shifted_left<23>(e)) - Floats(1.0f);
    const Floats t2 = t * t;
    Floats p(0.070376836292f);
    for (float c : {-0.1151461031f, 0.1167699874f, -0.12420140846f, 0.14249322787f, -0.16668057665f,
                    0.20000714765f, -0.24999993993f, 0.33333331174f})
        p = p * t + Floats(c);
    return (p * t * t2 - Floats(0.5f) * t2 + t) + to_floats(e) * Floats(0.69314718056f);
}

// The exponential function of numbers from -80 to 80, which others are bounded to.
HAMFLOW_INLINE Floats exp(const Floats& a) {
    const Floats x = min(max(a, Floats(-80.0f)), Floats(80.0f));
    constexpr float whole = 12582912.0f;  // 1.5 * 2^23: from there on floats are whole numbers
    const Floats shifted = x * Floats(1.44269504f) + Floats(whole);
    const Floats n = shifted - Floats(whole);
    const Floats r = x - n * Floats(0.693359375f) + n * Floats(2.12194440e-4f);
    Floats p(1.9875691500e-4f);
    for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f})
        p = p * r + Floats(c);
    const Ints power = shifted_left<23>(as_ints(shifted) - as_ints(Floats(whole)) + Ints(127));
    return (p * r * r + r + Floats(1.0f)) * as_floats(power);
}

// The sum of all lanes, always in the same order.
HAMFLOW_INLINE float sum(const Floats& a) {
    float s[lanes];
    a.store(s);
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) s[k] += s[k + half];
    return s[0];
}
HAMFLOW_INLINE double sum(const Doubles& a) {
    double s[lanes / 2];
    a.store(s);
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
HAMFLOW_INLINE float least(const Floats& a) {
#if defined(__AVX512F__)
    __m512 v = (__m512)a.part[0];
    v = _mm512_mask_min_ps(v, 0xffff, v, _mm512_mask_shuffle_f32x4(v, 0xffff, v, v, 0x4e));
    v = _mm512_mask_min_ps(v, 0xffff, v, _mm512_mask_shuffle_f32x4(v, 0xffff, v, v, 0xb1));
    v = _mm512_mask_min_ps(v, 0xffff, v, _mm512_mask_permute_ps(v, 0xffff, v, 0x4e));
    v = _mm512_mask_min_ps(v, 0xffff, v, _mm512_mask_permute_ps(v, 0xffff, v, 0xb1));
    return _mm512_cvtss_f32(v);
#else
    float s[lanes];
    a.store(s);
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) s[k] = s[k] < s[k + half] ? s[k] : s[k + half];
    return s[0];
#endif
}
// One bit for each lane in which a comparison holds.
HAMFLOW_INLINE std::uint32_t bits_of(const Ints& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)mask.part[0]);
#else
    std::uint32_t bits = 0;
    unroll<native_parts>([&](auto p) HAMFLOW_INLINE_LAMBDA {
#if defined(__AVX2__)
        const int part = _mm256_movemask_ps((__m256)mask.part[p]);
#elif defined(__SSE2__)
        const int part = _mm_movemask_ps((__m128)mask.part[p]);
#else
        int part = 0;
        for (int k = 0; k < native_lanes; ++k) part |= (mask.part[p][k] & 1) << k;
#endif
        bits |= static_cast<std::uint32_t>(part) << (p * native_lanes);
    });
    return bits;
#endif
}

}  // namespace
}  // namespace hamflow
