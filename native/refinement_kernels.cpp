// The refinement of the instruction set in use.
#include "refinement_kernels.hpp"

#include <cstring>

#include "simd/levels.hpp"

namespace hamflow {
namespace {

const RefinementKernels& active_refinement() {
    const char* name = active_kernels().name;
#if defined(HAMFLOW_X86)
    for (const RefinementKernels* level : {&avx2_refinement, &avx512_refinement})
        if (std::strcmp(level->name, name) == 0) return *level;
#elif defined(HAMFLOW_NEON)
    if (std::strcmp(neon_refinement.name, name) == 0) return neon_refinement;
#endif
    return portable_refinement;
}

}  // namespace

void refine_variational(const Variational& problem) {
    active_refinement().refine_variational(problem);
}

void choose_motions(const Boundaries& problem) { active_refinement().choose_motions(problem); }
void compute_features(const Features& problem) { active_refinement().compute_features(problem); }
void compute_guards(const Guards& problem) { active_refinement().compute_guards(problem); }
void upsample_linear(const Upsampling& problem) { active_refinement().upsample_linear(problem); }

}  // namespace hamflow
