// What the AVX2 kernels would reach if loads, stores and loops cost nothing: their instruction
// mixes on registers alone.
#pragma once

#include "../kernels.hpp"
#include "avx2.hpp"

namespace hamflow {
namespace avx2 {
namespace {

// The compiler must believe that v has changed, so it computes everything anew.
template <class T>
HAMFLOW_INLINE T opaque(T& v) {
    asm volatile("" : "+x"(v));
    return v;
}

// `Bits::distances<4>` and the minima of c^u and c^v, for two pixels and 4 x 32 labels.
inline double peak_min_projection(long long rounds) {
    using V = Bits::V;
    V table = Bits::set1(1), index = Bits::set1(5), best_a = Bits::set1(0x7f), best_b = best_a;
    V row_a = best_a, row_b = best_a;
    const V low = Bits::set1(15);
    const auto look_up = [&]() HAMFLOW_INLINE_LAMBDA {
        return _mm256_shuffle_epi8(table, opaque(index));
    };
    // Equal in value, but not to be merged into one.
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    for (long long round = 0; round < rounds; ++round) {
        unroll<Bits::block>([&](auto) HAMFLOW_INLINE_LAMBDA {
            V sum, high;
            unroll<4>([&](auto g) HAMFLOW_INLINE_LAMBDA {
                V s0 = look_up(), s1 = look_up(), s2 = look_up(), s3 = look_up();
                const V s = _mm256_add_epi8(_mm256_add_epi8(s0, s1), _mm256_add_epi8(s2, s3));
                const V h = _mm256_and_si256(_mm256_srli_epi16(s, 4), low);
                sum = g ? _mm256_add_epi8(sum, s) : s;
                high = g ? _mm256_add_epi8(high, h) : h;
            });
            const V high16 = _mm256_andnot_si256(low, _mm256_slli_epi16(high, 4));
            V da = _mm256_add_epi8(_mm256_sub_epi8(sum, high16), look_up());
            V db = _mm256_add_epi8(high, look_up());
            best_a = Bits::min(best_a, opaque(da));
            best_b = Bits::min(best_b, opaque(db));
            row_a = Bits::min(row_a, da);
            row_b = Bits::min(row_b, db);
        });
    }
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    return 2.0 * Bits::block * Bits::lanes;
}

inline double peak_fma(long long rounds) {
    constexpr int chains = 12;  // more than latency times throughput
    Floats::F sum[chains], a = Floats::set1(0.5f), b = a;
    unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA { sum[c] = Floats::zero(); });
    for (long long round = 0; round < rounds; ++round)
        unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA {
            sum[c] = Floats::fma(opaque(a), b, sum[c]);
        });
    unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA { opaque(sum[c]); });
    return double(chains) * Floats::width;
}

inline double peak(Mix mix, long long rounds) {
    return mix == Mix::min_projection ? peak_min_projection(rounds) : peak_fma(rounds);
}

}  // namespace
}  // namespace avx2
}  // namespace hamflow
