// Smoothed images and the contrast between neighboring pixels.
#pragma once

namespace hamflow {

struct Smoothing {
    int h, w, channels;
    const float* image;    // h x w x channels, continued by its outermost pixels
    int radius;
    const float* weights;  // 2 radius + 1, for rows and columns
    float* out;            // h x w x channels
};
void smooth(const Smoothing&);

// Mean absolute differences to the right and lower neighbors, 0 at the border; h x w each.
void contrasts(const float* image, int h, int w, int channels, float* right, float* down);

}  // namespace hamflow
