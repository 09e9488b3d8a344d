// Fields that the refinement needs of an image or a flow: see features.inl and guards.inl.
#pragma once

namespace hamflow {

// Of each pixel the three colors, smoothed, and the derivatives along x and y of their mean and of
// red against blue; the last channel is zero. Beyond the border an image is continued by its
// outermost pixels.
struct Features {
    int h, w;
    const float* image;     // h x w x 3
    int radius;             // of the smoothing
    const float* smoothing; // 2 * radius + 1 weights
    float* out;             // h x w x feature_channels
};

// Guards of the refinement, from the flow that it starts from. A jump is the difference between
// the flows of neighbors.
//   right, down:  1 / (1 + (jump / boundary)^2), 0 for the last column and row
//   guarded:      weight / (1 + (largest jump within two pixels / near)^2); near <= 0 leaves it
struct Guards {
    int h, w;
    const float* flow;           // h x w x 2
    const float* weight;         // h x w
    float boundary, near;
    float *right, *down, *guarded;  // h x w
};

// Linear interpolation between the centers of boxes of factor x factor pixels; constant beyond the
// outermost centers.
struct Upsampling {
    int h, w, channels;
    const float* field;  // h x w x channels
    int factor, out_h, out_w;
    float* out;          // out_h x out_w x channels
};

}  // namespace hamflow
