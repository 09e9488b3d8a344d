// The search window W = [u0, u0 + du) x [v0, v0 + dv) of the paper's section 3, and the arguments
// of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/common.hpp"

namespace hamflow {

struct Window {
    int u0, du, v0, dv;
    HAMFLOW_INLINE Window transposed() const { return {v0, dv, u0, du}; }
};

// Half-open range of the labels k in [0, count) whose target `position + first + k` lies in
// [0, size). Labels outside of it cost c_outside (eq. 1).
struct LabelRange {
    int lo, hi;
    HAMFLOW_INLINE bool empty() const { return lo >= hi; }
    HAMFLOW_INLINE bool covers(int count) const { return lo == 0 && hi == count; }
    HAMFLOW_INLINE bool contains(int k) const { return k >= lo && k < hi; }
    // The smallest label outside of the range, or `count` when there is none.
    HAMFLOW_INLINE int first_outside(int count) const {
        return empty() || lo > 0 ? 0 : (hi < count ? hi : count);
    }
};

HAMFLOW_INLINE LabelRange labels_inside(int position, int first, int count, int size) {
    // long long: position + first may exceed int for extreme windows.
    const long long start = static_cast<long long>(position) + first;
    long long lo = start < 0 ? -start : 0;
    long long hi = size - start;
    if (hi > count) hi = count;
    if (lo >= hi) return {0, 0};
    return {static_cast<int>(lo), static_cast<int>(hi)};
}

HAMFLOW_INLINE LabelRange u_labels(const Window& win, int x, int w) {
    return labels_inside(x, win.u0, win.du, w);
}
HAMFLOW_INLINE LabelRange v_labels(const Window& win, int y, int h) {
    return labels_inside(y, win.v0, win.dv, h);
}

// Two fields of packed descriptors of one or two 64-bit words, h x w x words and to_h x w x words,
// row-major; or, with the strides swapped, the same two transposed in place: u and v change their
// roles. A strip of an image is matched with the rows of the other one that its window reaches.
struct BitsPair {
    const std::uint64_t* bits0;
    const std::uint64_t* bits1;
    int h, w, words;
    int to_h, to_w;  // of the second field
    std::size_t step_y, step_x;

    HAMFLOW_INLINE BitsPair(const std::uint64_t* b0, const std::uint64_t* b1, int height, int width,
                            int words_per_pixel, int to_height = 0)
        : bits0(b0), bits1(b1), h(height), w(width), words(words_per_pixel),
          to_h(to_height ? to_height : height), to_w(width), step_y(static_cast<std::size_t>(width)), step_x(1) {}
    // Where pixel (x, y) is, also in the outputs.
    HAMFLOW_INLINE std::size_t pixel(int x, int y) const { return y * step_y + x * step_x; }
    // The words of a pixel of the first image, and of the second.
    HAMFLOW_INLINE const std::uint64_t* from(std::size_t pixel) const {
        return bits0 + pixel * words;
    }
    HAMFLOW_INLINE const std::uint64_t* to(std::size_t pixel) const {
        return bits1 + pixel * words;
    }
    HAMFLOW_INLINE BitsPair transposed() const {
        BitsPair t(bits0, bits1, w, h, words);
        t.to_h = to_w;
        t.to_w = to_h;
        t.step_y = step_x;
        t.step_x = step_y;
        return t;
    }
};

// Two fields of float descriptors, h x w x m and to_h x w x m, row-major.
struct PhiPair {
    const float* phi0;
    const float* phi1;
    int h, w, m;
    int to_h = h;
};

// The cost of eq. 1 from bits, c = step * distance + base, and c_outside.
struct FixedCost {
    int step, base, outside;
};
struct FloatCost {
    float step, base, outside;
};

// Which plane a message is sent to: to_v is min_u [c - lam_u], to_u is min_v [c - lam_v].
enum class Direction { to_u, to_v };

}  // namespace hamflow
