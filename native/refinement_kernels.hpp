// What is computed for each instruction set after matching: one table per level, as for the
// kernels of matching.
#pragma once

#include "boundaries.hpp"
#include "features.hpp"
#include "variational.hpp"

namespace hamflow {

struct RefinementKernels {
    const char* name;  // of the level
    void (*refine_variational)(const Variational&);
    void (*choose_motions)(const Boundaries&);
    void (*compute_features)(const Features&);
    void (*compute_guards)(const Guards&);
    void (*upsample_linear)(const Upsampling&);
};

extern const RefinementKernels portable_refinement;
#if defined(HAMFLOW_X86)
extern const RefinementKernels avx2_refinement;
extern const RefinementKernels avx512_refinement;
#endif
#if defined(HAMFLOW_NEON)
extern const RefinementKernels neon_refinement;
#endif

}  // namespace hamflow
