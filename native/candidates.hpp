// Choice among candidate motions, jointly for all pixels: see the .cpp.
#pragma once

namespace hamflow {

struct CandidateProblem {
    int h, w, labels, pixels;
    const int* pixel;           // y * w + x of each pixel whose candidate is sought: "open"
    const float* unary;         // pixels x labels: cost of each candidate
    const float* motion;        // labels x h x w x 2: the candidates; pixels that are not open
                                // have the first one
    const float *right, *down;  // h x w: weight of the edge to the right and lower neighbor
    float cap;                  // differences of flow (|du| + |dv|) count up to this
    int rounds;                 // of four sweeps each
    int* label;                 // h x w: the candidate of each open pixel; others stay
};

void choose_candidates(const CandidateProblem&);

// The state of belief propagation, pixels x stride: candidates are padded to whole vectors.
struct Beliefs {
    int h, w, labels, stride;
    float cap;
    const int* number;          // of each open pixel, -1 for others
    const float *right, *down;  // weights of the edges
    const float *u, *v;         // flows of the candidates
    float* belief;              // what a candidate costs, with all that the neighbors say
    float* message[4];          // from the left, from the right, from above, from below
};

}  // namespace hamflow
