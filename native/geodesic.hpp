// Lengths of paths that avoid image edges: see the .cpp.
#pragma once

#include <cstdint>

namespace hamflow {

struct Geodesic {
    int h, w, sets;
    const float *right, *down;      // h x w: length of the step to the right and lower neighbor
    const std::uint8_t* source;     // sets x h x w: where the paths of each set begin
    int rounds;                     // of two sweeps each
    float* distance;                // sets x h x w: length of the shortest path, 1e30 without one
};

void geodesic_distances(const Geodesic&);

}  // namespace hamflow
