// Primal moves of the CRF: see relabel.inl and fusion.cpp.
#pragma once

#include <cstdint>

#include "chain_pass.hpp"
#include "window.hpp"

namespace hamflow {

// Which pixels get new labels together: every other row or column, as a chain each, or every other
// pixel as on a checkerboard, alone.
enum class Blocks { rows, columns, pixels };

// The edges of one plane, h x w each: from each pixel to the one on its right, and below.
template <class T>
struct Edges {
    const EdgeCost<T>* right;
    const EdgeCost<T>* down;
    int reach;
};

// New labels u for the energy with v given; for v given u the same transposed. `unary` (h x w x du,
// may be null) is added to the data costs, times `unit`.
template <class T, class Pair, class Cost>
struct Relabeling {
    Pair pair;
    Window win;
    Cost cost;
    Edges<T> edges;
    Blocks blocks;
    const std::int16_t* v;
    std::int16_t* u;
    const std::uint8_t* unary;
    T unit;
};
struct ScaledCost {
    float scale, outside;  // of -<phi0, phi1>, and what a target outside costs when scaled
};
using RelabelingBits16 = Relabeling<std::int16_t, BitsPair, FixedCost>;
using RelabelingBits32 = Relabeling<float, BitsPair, FloatCost>;
using RelabelingPhi = Relabeling<float, PhiPair, ScaledCost>;

// Two labelings to one: along each row or column, of those given in turn the best choice of one
// of the two for each pixel, by an exact minimization over the chain with its neighbors fixed.
// All in double precision and with the unrounded energy, which thus never rises.
struct Fusion {
    int h, w;
    const float *right, *down;  // weights w_ij, h x w
    const double* rho;          // rho(|t|) for |t| = 0 .. rho_count - 1
    int rho_count;
    std::int16_t *u, *v;                  // the first labeling, and the result
    double* data;                         // its data costs, likewise
    const std::int16_t *other_u, *other_v;
    const double* other_data;
};
void fuse(const Fusion&, Blocks);

}  // namespace hamflow
