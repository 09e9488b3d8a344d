// Homographies that many matches agree on: see the .cpp.
#pragma once

namespace hamflow {

struct PlaneSearch {
    int seeds;
    const float* place;   // seeds x 2: where (x, y) a match was measured
    const float* match;   // seeds x 2: its flow
    const float* models;  // seeds x 6: affine motion around it, as `interpolate` writes it
    int count;            // planes at most
    int tries;            // starts for each of them
    int least;            // matches that a plane needs
    float tolerance;      // residuals of matches that belong to a plane, in pixels
    double* planes;       // count x 9: homographies, in rows; only those found are written
    int* plane;           // seeds: the plane of each match, or -1
};

// Returns how many were found.
int find_planes(const PlaneSearch&);

}  // namespace hamflow
