// The kernels of the stages after matching, of the level in use.
#include "completion_kernels.hpp"
#include "refinement_kernels.hpp"
#include "simd/levels.hpp"

namespace hamflow {

const CompletionKernels& completion_kernels() {
    static const CompletionKernels* const tables[] = HAMFLOW_EACH_LEVEL(completion);
    return *tables[active_level()];
}

const RefinementKernels& refinement_kernels() {
    static const RefinementKernels* const tables[] = HAMFLOW_EACH_LEVEL(refinement);
    return *tables[active_level()];
}

}  // namespace hamflow
