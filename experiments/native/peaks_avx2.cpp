#include "peaks.hpp"
#include "simd/avx2.hpp"

namespace hamflow {
namespace avx2 {
namespace {

template <class T>
HAMFLOW_INLINE T opaque(T& v) {
    asm volatile("" : "+x"(v));
    return v;
}

struct RegisterMix {
    using V = Bits<1>::V;
    V table = Bits<1>::set1(1), index = Bits<1>::set1(5), low = Bits<1>::set1(15);

    HAMFLOW_INLINE V look_up() { return _mm256_shuffle_epi8(table, opaque(index)); }
    HAMFLOW_INLINE void distances(V& da, V& db) {
        V sum, high;
        unroll<4>([&](auto g) HAMFLOW_INLINE_LAMBDA {
            const V s0 = look_up(), s1 = look_up(), s2 = look_up(), s3 = look_up();
            const V s = _mm256_add_epi8(_mm256_add_epi8(s0, s1), _mm256_add_epi8(s2, s3));
            const V h = _mm256_and_si256(_mm256_srli_epi16(s, 4), low);
            sum = g ? _mm256_add_epi8(sum, s) : s;
            high = g ? _mm256_add_epi8(high, h) : h;
        });
        const V high16 = _mm256_andnot_si256(low, _mm256_slli_epi16(high, 4));
        da = _mm256_add_epi8(_mm256_sub_epi8(sum, high16), look_up());
        db = _mm256_add_epi8(high, look_up());
    }
};

#include "peak.inl"
}  // namespace
const Peaks peaks = {"avx2", peak_min_projection, peak_fused_multiply_add};
}  // namespace avx2
}  // namespace hamflow
