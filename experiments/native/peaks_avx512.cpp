#include "peaks.hpp"
#include "simd/avx512.hpp"

namespace hamflow {
namespace avx512 {
namespace {

template <class T>
HAMFLOW_INLINE T opaque(T& v) {
    asm volatile("" : "+v"(v));
    return v;
}

struct RegisterMix {
    using V = Bits<1>::V;
    V target = Bits<1>::set1(1), a = Bits<1>::set1(5), b = Bits<1>::set1(9);

    HAMFLOW_INLINE V count(V& pixel) {
        return _mm512_popcnt_epi8(_mm512_xor_si512(target, opaque(pixel)));
    }
    HAMFLOW_INLINE void distances(V& da, V& db) {
        unroll<Bits<1>::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            da = p ? _mm512_add_epi8(da, count(a)) : count(a);
            db = p ? _mm512_add_epi8(db, count(b)) : count(b);
        });
    }
};

#include "peak.inl"
}  // namespace
const Peaks peaks = {"avx512", peak_min_projection, peak_fused_multiply_add};
}  // namespace avx512
}  // namespace hamflow
