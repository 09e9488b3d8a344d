// A flow that is expected because the opposite one is known.
#pragma once

namespace hamflow {

struct Expectation {
    int h, w;
    const float* opposite;  // (h, w, 2)
    bool there;       // of the frame that the flow leads to; otherwise of the one it starts from
    float tolerance;  // pixels
    float* flow;      // (h, w, 2), replaced where the expected one is near
};

void adopt_expected(const Expectation& problem);

}  // namespace hamflow
