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

// The flow of each of some homographies (count x 9), count x h x w x 2.
void plane_motions(const double* planes, int count, int h, int w, float* motion);

// Matches side by side, padded to whole vectors of 16 by some that agree with nothing.
struct PlaneMatches {
    int padded;
    const float *x, *y, *u, *v;
};
// Places and targets in coordinates of unit spread around their middle, padded to whole vectors of
// 8 by some that are not to be used (`use` is 1 or 0).
struct PlanePoints {
    int padded;
    double scale;  // of a residual, to units of the tolerance
    const double *x, *y, *u, *v, *use;
};
struct PlaneEquations {
    double a[8][8], b[8];  // the lower half of a symmetric matrix
    double total;          // sum of the weights
};

}  // namespace hamflow
