#include "peaks.hpp"
#include "simd/portable.hpp"

namespace hamflow {
namespace portable {
namespace {

template <class T>
HAMFLOW_INLINE T opaque(T& v) {
#if defined(__SSE2__)
    asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(v));
#else
    // Through memory, as nothing is known about the registers.
    T* volatile p = &v;
    v = *p;
#endif
    return v;
}

struct RegisterMix {
    using V = Bits<1>::V;
    V target = Bits<1>::set1(1), pixel = Bits<1>::set1(5);

    HAMFLOW_INLINE void distances(V& da, V& db) {
        const auto plane = [&](int) HAMFLOW_INLINE_LAMBDA { return target ^ opaque(pixel); };
        da = Bits<1>::count_bits(plane);
        db = Bits<1>::count_bits(plane);
    }
};

#include "peak.inl"
}  // namespace
const Peaks peaks = {"portable", peak_min_projection, peak_fused_multiply_add};
}  // namespace portable
}  // namespace hamflow
