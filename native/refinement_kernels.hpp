// What is computed for each instruction set after matching: one table per level, as for the
// kernels of matching.
#pragma once

#include "boundaries.hpp"
#include "features.hpp"
#include "simd/each_level.hpp"
#include "variational.hpp"

namespace hamflow {

struct RefinementKernels {
    void (*refine_variational)(const Variational&);
    void (*choose_motions)(const Boundaries&);
    void (*compute_features)(const Features&);
    void (*compute_guards)(const Guards&);
    void (*upsample_linear)(const Upsampling&);
};

HAMFLOW_DECLARE_TABLES(RefinementKernels, refinement)

// Those of the level in use.
const RefinementKernels& refinement_kernels();

}  // namespace hamflow
