// How well candidate motions suit a pixel: see the .cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/common.hpp"

namespace hamflow {

constexpr int score_features = 20;

struct Scoring {
    int h, w, labels;
    const std::uint64_t *bits0, *bits1;  // h x w
    const float* motion;                 // labels x h x w x 2: the candidates, first the
                                         // interpolated flow
    const float* matched;                // h x w x 2: the flow as it was matched
    const std::uint8_t* kept;            // h x w: whether it can be trusted
    const float* back;                   // h x w x 2: flow of the second image to the first,
    const std::uint8_t* back_trusted;    // h x w: and where it can be trusted
    const float* geodesic;               // labels x h x w: length of the path to the support
    const float* texture;                // h x w: contrast to the right and lower neighbor
    const float* size;                   // labels: logarithm of the share of seeds in support
    float low[2], high[2];               // range of the trusted flow
    int pixels;
    const int* pixel;                    // y * w + x of each pixel that is asked for
    int hidden;                          // units of each of the two inner layers
    const float* network;                // bounds of the features (low, high), then the layers:
                                         // biases, then weights input by input; the last has no bias
    float* features;                     // labels x stride x pixels, of which the first
                                         // score_features are written; or null
    int stride;                          // at least score_features
    float* score;                        // pixels x labels: the lower the better; or null
};

void score_candidates(const Scoring&);

// Sides of the squares of neighbors that are counted.
constexpr int near_radius = 2, support_radius = 8, wide_radius = 32;
constexpr float area_of(int radius) {
    return static_cast<float>((2 * radius + 1) * (2 * radius + 1));
}
constexpr float near_area = area_of(near_radius), support_area = area_of(support_radius),
                wide_area = area_of(wide_radius);

// How the work of a scoring is arranged: the pixels that are asked for in the order of rows.
struct ScoringPlan {
    int h, w;
    const int* row;              // h + 1: where the pixels of each row begin
    const int* column;           // of each pixel
    const int* number;           // of each pixel: which one it is of those of the scoring
    const int* pixels;           // of the scoring
    const int* run_row;          // h + 1: where the runs of each row begin
    const int* runs;             // begin and end of each run of pixels near to those asked for
    std::size_t stride;          // pixels, rounded up to a whole number of vectors
    const std::uint32_t* kept;   // stride: matches around that are trusted; see scoring.inl
    const std::uint32_t *targets, *support;  // labels x stride
    int units;                   // of each inner layer, a multiple of four
    const float* network;        // as that of the scoring, without bounds

    HAMFLOW_INLINE int pixel(int k) const { return pixels[number[k]]; }
};

}  // namespace hamflow
