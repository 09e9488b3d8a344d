// The flow of a video along its tracks: what is carried over from the pair before, and how far it
// is taken over.
#pragma once

namespace hamflow {

struct Carried {
    int h, w;
    const float* flow;        // (h, w, 2) of the pair before
    const float* confidence;  // (h, w): 1 / (1 + expected error)
    const float* along;       // (h, w, 2), from here to there
    float alike;              // pixels: neighbors that differ by more are of another surface
    float relative, absolute; // of squares: what comes back farther away was hidden
    float* expected;          // (h, w, 3): u, v, confidence, which is 0 where nothing is known
};

void carry(const Carried& problem);

struct Blended {
    int h, w;
    const float* measured;    // (h, w, 2)
    const float* confidence;  // (h, w): 1 / (1 + expected error)
    const float* expected;    // (h, w, 3): u, v, confidence
    const float* changes;     // (h, w, 3): what is to be added to it (u, v), and a factor
    float change, relative;   // how motions change from pair to pair: in pixels, as a share of them
    float apart;              // standard deviations: flows that differ by more have no mean
    float* flow;              // (h, w, 2)
    float* certain;           // (h, w): the confidence in it
};

void blend(const Blended& problem);

}  // namespace hamflow
