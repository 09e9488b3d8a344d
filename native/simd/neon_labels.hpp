// Vectors of labels for the chains of the CRF: see label_rows.inl.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "common.hpp"

namespace hamflow {
namespace neon {

// Rows of labels in fixed point, for the chains.
struct Labels16 {
    using T = std::int16_t;
    using Share = std::uint16_t;  // in units of 2^-16
    using Sum = std::int64_t;
    using V = int16x8_t;
    static constexpr int width = 8;
    static constexpr T big = 32767, lowest = -32768;
    static constexpr Share nothing = 0;
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V loadu(const T* p) { return vld1q_s16(p); }
    static HAMFLOW_INLINE void storeu(T* p, V v) { vst1q_s16(p, v); }
    static HAMFLOW_INLINE V set1(T x) { return vdupq_n_s16(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return vaddq_s16(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return vqaddq_s16(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return vsubq_s16(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return vminq_s16(a, b); }
    static HAMFLOW_INLINE V max(V a, V b) { return vmaxq_s16(a, b); }
    // Two vectors in succession; from them the labels one before or after.
    struct Between { V a, b; };
    static HAMFLOW_INLINE Between between(V a, V b) { return {a, b}; }
    static HAMFLOW_INLINE V below(Between low, V v) { return vextq_s16(low.a, v, 7); }
    static HAMFLOW_INLINE V above(V v, Between high) { return vextq_s16(v, high.b, 1); }
    static HAMFLOW_INLINE uint16x4_t share_of(Share g) { return vdup_n_u16(g); }
    // Rounded down; both are unsigned here.
    static HAMFLOW_INLINE V times(V a, uint16x4_t g) {
        const uint16x8_t u = vreinterpretq_u16_s16(a);
        const uint16x4_t low = vshrn_n_u32(vmull_u16(vget_low_u16(u), g), 16);
        const uint16x4_t high = vshrn_n_u32(vmull_u16(vget_high_u16(u), g), 16);
        return vreinterpretq_s16_u16(vcombine_u16(low, high));
    }
    // The minimum of all lanes, in all lanes.
    static HAMFLOW_INLINE V min_across(V v) { return vdupq_n_s16(vminvq_s16(v)); }
    static HAMFLOW_INLINE T first(V v) { return vgetq_lane_s16(v, 0); }
    static Share share(int part, int of) {
        return static_cast<Share>((std::int64_t(part) << 16) / of);
    }
    static T twice(T x) { return saturate16(2 * x); }
};

// The same in whole numbers of float32.
struct Labels32 {
    using T = float;
    using Share = float;
    using Sum = double;
    using V = float32x4_t;
    static constexpr int width = 4;
    static constexpr T big = 1e9f, lowest = -1e9f;
    static constexpr Share nothing = 0;
    static constexpr bool unrolled = true;  // rows of the usual lengths
    static HAMFLOW_INLINE V loadu(const T* p) { return vld1q_f32(p); }
    static HAMFLOW_INLINE void storeu(T* p, V v) { vst1q_f32(p, v); }
    static HAMFLOW_INLINE V set1(T x) { return vdupq_n_f32(x); }
    static HAMFLOW_INLINE V add(V a, V b) { return vaddq_f32(a, b); }
    static HAMFLOW_INLINE V adds(V a, V b) { return vaddq_f32(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) { return vsubq_f32(a, b); }
    static HAMFLOW_INLINE V min(V a, V b) { return vminq_f32(a, b); }
    static HAMFLOW_INLINE V max(V a, V b) { return vmaxq_f32(a, b); }
    struct Between { V a, b; };
    static HAMFLOW_INLINE Between between(V a, V b) { return {a, b}; }
    static HAMFLOW_INLINE V below(Between low, V v) { return vextq_f32(low.a, v, 3); }
    static HAMFLOW_INLINE V above(V v, Between high) { return vextq_f32(v, high.b, 1); }
    static HAMFLOW_INLINE V share_of(Share g) { return vdupq_n_f32(g); }
    static HAMFLOW_INLINE V times(V a, V g) { return vrndmq_f32(vmulq_f32(a, g)); }
    static HAMFLOW_INLINE V min_across(V v) { return vdupq_n_f32(vminvq_f32(v)); }
    static HAMFLOW_INLINE T first(V v) { return vgetq_lane_f32(v, 0); }
    static Share share(int part, int of) {
        return static_cast<Share>(part) / static_cast<Share>(of);
    }
    static T twice(T x) { return 2 * x; }
};

// Hamming distances of one descriptor to n others.
inline void row_distances(std::uint64_t bits, const std::uint64_t* targets, int n,
                          std::int16_t* out) {
    for (int k = 0; k < n; ++k) out[k] = static_cast<std::int16_t>(popcount64(bits ^ targets[k]));
}

}  // namespace neon
}  // namespace hamflow
