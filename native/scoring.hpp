// How well candidate motions suit a pixel: see the .cpp.
#pragma once

#include <cstdint>

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
    float* features;                     // pixels x labels x score_features, or null
    float* score;                        // pixels x labels: the lower the better; or null
};

void score_candidates(const Scoring&);

}  // namespace hamflow
