#include "peaks.hpp"
#include "simd/neon.hpp"

namespace hamflow {
namespace neon {
namespace {

template <class T>
HAMFLOW_INLINE T opaque(T& v) {
    asm volatile("" : "+w"(v));
    return v;
}

struct RegisterMix {
    using V = Bits<1>::V;
    V target = Bits<1>::set1(1), a = Bits<1>::set1(5), b = Bits<1>::set1(9);

    HAMFLOW_INLINE V count(V& pixel) {
        return vcntq_u8(veorq_u8(target, opaque(pixel)));
    }
    HAMFLOW_INLINE void distances(V& da, V& db) {
        unroll<Bits<1>::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            da = p ? vaddq_u8(da, count(a)) : count(a);
            db = p ? vaddq_u8(db, count(b)) : count(b);
        });
    }
};

#include "peak.inl"
}  // namespace
const Peaks peaks = {"neon", peak_min_projection, peak_fused_multiply_add};
}  // namespace neon
}  // namespace hamflow
