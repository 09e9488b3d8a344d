// The flow of one direction, as the finished flow of the other one lets expect it.
#pragma once

namespace hamflow {

struct Opposite {
    int h, w;
    const float* opposite;  // (h, w, 2), from the second frame to the first
    float tolerance;        // pixels
    float* flow;            // (h, w, 2), replaced where the expected one is near
};

void adopt_opposite(const Opposite& problem);

}  // namespace hamflow
