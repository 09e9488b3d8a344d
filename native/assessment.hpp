// Forward against backward flow, and how far a flow can be trusted: see assessment.inl.
#pragma once

#include <cstdint>

namespace hamflow {

struct ThereAndBack {
    int h, w;
    const float *flow, *backward;  // h x w x 2
    float relative, absolute;      // hidden if d^2 > relative (|f|^2 + |b|^2) + absolute
    float* apart;                  // h x w: how far from its start a pixel ends up; or null
    std::uint8_t* hidden;          // h x w: 1 where a pixel is not to be seen; or null
};

struct Assessment {
    ThereAndBack ways;
    int channels;                   // of the images, of which the first three are compared
    const float *first, *second;    // h x w x channels
    int scale, coarse_h, coarse_w;  // of the distances
    const float* distance;          // coarse_h x coarse_w: to the nearest match
    float constant, weights[3];     // of the logarithm of the error: of disagreement, distance and
                                    // difference of the colors
    float most, floor;              // largest disagreement; what is added to it, and to the error
    float* confidence;              // h x w
};

void there_and_back(const ThereAndBack&);
void assess(const Assessment&);

}  // namespace hamflow
