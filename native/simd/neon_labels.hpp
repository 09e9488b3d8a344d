// Vectors of labels for the chains of the CRF: see label_rows.inl.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "labels.hpp"

namespace hamflow {
namespace neon {

struct Labels16 : FixedLabels {
    using V = int16x8_t;
    static constexpr int width = 8;
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

    // For chains side by side (chains_abreast.inl).
    static constexpr int group = width;
    static HAMFLOW_INLINE V zip_low(V a, V b) { return vzip1q_s16(a, b); }
    static HAMFLOW_INLINE V zip_high(V a, V b) { return vzip2q_s16(a, b); }
    static HAMFLOW_INLINE V load_pieces(const T* p, const std::ptrdiff_t* offset) {
        return loadu(p + offset[0]);
    }
    static HAMFLOW_INLINE void store_pieces(T* p, const std::ptrdiff_t* offset, V v) {
        storeu(p + offset[0], v);
    }
};

struct Labels32 : FloatLabels {
    using V = float32x4_t;
    static constexpr int width = 4;
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

    static constexpr int group = width;
    static HAMFLOW_INLINE V zip_low(V a, V b) { return vzip1q_f32(a, b); }
    static HAMFLOW_INLINE V zip_high(V a, V b) { return vzip2q_f32(a, b); }
    static HAMFLOW_INLINE V load_pieces(const T* p, const std::ptrdiff_t* offset) {
        return loadu(p + offset[0]);
    }
    static HAMFLOW_INLINE void store_pieces(T* p, const std::ptrdiff_t* offset, V v) {
        storeu(p + offset[0], v);
    }
};

using Chains16 = Labels16;
using Chains32 = Labels32;

}  // namespace neon
}  // namespace hamflow
