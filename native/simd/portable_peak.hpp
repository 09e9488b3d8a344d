// What the portable kernels would reach if loads, stores and loops cost nothing: their
// instruction mixes on registers alone.
#pragma once

#include "../kernels.hpp"
#include "portable.hpp"

namespace hamflow {
namespace portable {
namespace {

// The compiler must believe that v has changed, so it computes everything anew.
template <class T>
HAMFLOW_INLINE T opaque(T& v) {
#if defined(HAMFLOW_VECTOR_EXTENSIONS) && defined(__SSE2__)
    asm volatile("" : "+x"(v));
#elif defined(HAMFLOW_VECTOR_EXTENSIONS) && defined(__aarch64__)
    asm volatile("" : "+w"(v));
#else
    // Through memory, as nothing is known about the registers.
    T* volatile p = &v;
    v = *p;
#endif
    return v;
}

// `Bits::distances<4>` and the minima of c^u and c^v, for two pixels and 4 x 16 labels.
inline double peak_min_projection(long long rounds) {
    using V = Bits::V;
    V q = Bits::set1(1), pixel = Bits::set1(5);
    V best_a = Bits::set1(0x7f), best_b = best_a, row_a = best_a, row_b = best_a;
    const auto plane = [&](int) HAMFLOW_INLINE_LAMBDA { return q ^ opaque(pixel); };
    // Equal in value, but not to be merged into one.
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    for (long long round = 0; round < rounds; ++round) {
        unroll<Bits::block>([&](auto) HAMFLOW_INLINE_LAMBDA {
            V da = Bits::count_bits(plane);
            best_a = Bits::min(best_a, opaque(da));
            row_a = Bits::min(row_a, opaque(da));
            V db = Bits::count_bits(plane);
            best_b = Bits::min(best_b, opaque(db));
            row_b = Bits::min(row_b, opaque(db));
        });
    }
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    return 2.0 * Bits::block * Bits::lanes;
}

// Multiplications and additions apart, as the baseline has them.
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
}  // namespace portable
}  // namespace hamflow
