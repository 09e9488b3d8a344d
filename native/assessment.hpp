// Forward against backward flow, and how far a flow can be trusted: see assessment.inl.
#pragma once

#include <cstdint>

#include "variational.hpp"  // feature_channels

namespace hamflow {

struct ThereAndBack {
    int h, w;
    const float *flow, *backward;  // h x w x 2
    float relative, absolute;      // hidden if d^2 > relative (|f|^2 + |b|^2) + absolute
    float* apart;                  // h x w: how far from its start a pixel ends up; or null
    std::uint8_t* hidden;          // h x w: 1 where a pixel is not to be seen; or null
};

// What the pixels are like that matches lead to.
struct Targets {
    int h, w;
    const float* flow;                    // h x w x 2
    const std::uint64_t *first, *second;  // h x w: descriptors
    const float* texture;                 // h x w: of the second image
    const std::uint8_t* trusted;          // h x w: matches of the second image
    float* out;  // h x w x 3: share of different bits, trusted, texture; 0.5, 0 and 0 outside
};

// Evidence of a pixel: first what is known of it alone, then what is known of its surroundings at
// the matching scale, last the scale.
constexpr int own_evidence = 10, coarse_evidence = 11;
constexpr int all_evidence = own_evidence + coarse_evidence + 1;
constexpr int assessment_units = 16;  // of each network
// Bounds of the evidence, lower ones first; then for each network biases, weights input by input,
// weights of the units, and a constant; last the largest logarithm of an error.
constexpr int assessment_weights =
    2 * all_evidence + 2 * (assessment_units * (all_evidence + 2) + 1) + 1;

struct Assessment {
    ThereAndBack ways;  // in which only the flows count
    const float *first, *second;          // h x w x feature_channels
    const float* cover;                   // h x w: how many pixels of the second image lead to each
    int scale, coarse_h, coarse_w;        // of the surroundings
    const float* coarse;                  // coarse_h x coarse_w x coarse_evidence
    float unit;                           // length of a pixel, in those of the images
    float size;                           // the last evidence
    const float* network;                 // assessment_weights
    float* evidence;                      // h x w x all_evidence; or null
    float *confidence, *occlusion;        // h x w: the latter positive where a pixel is hidden
};

void there_and_back(const ThereAndBack&);
void look_at_targets(const Targets&);
// How many pixels lead to each one, spread over four neighbors: h x w.
void count_arrivals(const float* flow, int h, int w, float* cover);
void assess(const Assessment&);

}  // namespace hamflow
