// Affine models of the flow, and the matches around a seed that one is fitted to.
#pragma once

#include "simd/common.hpp"

namespace hamflow {

// flow(x, y) = (u + ux dx + uy dy, v + vx dx + vy dy) with (dx, dy) from the center.
struct Affine {
    float cx = 0, cy = 0;
    float u = 0, ux = 0, uy = 0;
    float v = 0, vx = 0, vy = 0;

    HAMFLOW_INLINE float u_at(float x, float y) const { return u + ux * (x - cx) + uy * (y - cy); }
    HAMFLOW_INLINE float v_at(float x, float y) const { return v + vx * (x - cx) + vy * (y - cy); }
};

// Matches around a seed, nearest first, in arrays of their own that are padded by matches of
// weight 0 to a whole number of vectors.
struct Neighborhood {
    int count, padded;
    float cx, cy;                         // the place of the seed,
    const float *x, *y, *u, *v, *weight;  // from where places are measured
    float tolerance;                      // residuals above are outliers
};

}  // namespace hamflow
