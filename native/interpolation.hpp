// Piecewise affine interpolation of scattered matches that respects image edges: see the .cpp.
#pragma once

namespace hamflow {

struct Interpolation {
    int h, w;
    const float *right, *down;  // h x w: length of the step to the neighbor on the right, below
    int seeds;
    const int* pixel;           // of each seed: its pixel y * w + x, all different
    const float* place;         // seeds x 2: where (x, y) the match was measured
    const float* match;         // seeds x 2: its flow
    const float* trust;         // seeds: its weight, > 0
    int neighbors;             // nearest seeds that a model is fitted to, itself among them
    float reach;                // distance at which a seed counts 1/e
    float tolerance;            // residuals above count as outliers
    int rounds;                 // in which seeds take over models of their neighbors
    float* flow;                // h x w x 2
    float* distance;            // h x w: geodesic distance to the nearest seed
    float* models = nullptr;    // seeds x 6, if wanted: u = m0 + m1 x + m2 y, v = m3 + m4 x + m5 y
};

void interpolate(const Interpolation&);

}  // namespace hamflow
