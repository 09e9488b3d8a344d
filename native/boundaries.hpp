// Choice of motions beside motion boundaries: see boundaries.inl.
#pragma once

namespace hamflow {

// Each pixel near a motion boundary takes that motion f of its neighborhood for which the sum of
// two costs is least:
//   data:       mean over 3 x 3 pixels j of min(1, |colors1(j + f) - colors0(j)| / difference),
//               `outside` where j + f leaves the image; weighted by similarity of color;
//   agreement:  smoothness * mean over the neighborhood of min(1, |f - flow_j| / apart), weighted
//               by similarity of color, nearness, and `distrust` where trust_j = 0.
// Its own motion has an advantage: `margin`, or `untrusted_margin` where it is not trusted.
struct Boundaries {
    int h, w;
    const float* guide;          // h x w x 3: whose similarity counts
    const float *f0, *f1;        // h x w x feature_channels: the first three are compared
    const float* trust;          // h x w
    float jump;                  // between the flows of neighbors, that makes a boundary
    int reach;                   // how far from a boundary there is a choice
    int rounds;
    int radius;                  // of the neighborhood, of which every other pixel is looked at
    float color, nearness;       // how fast similarity falls with contrast; a standard deviation
    float difference, outside;
    float smoothness, apart, distrust;
    float margin, untrusted_margin;
    float* flow;                 // h x w x 2, in and out
};

}  // namespace hamflow
