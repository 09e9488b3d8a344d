// The kernels of what comes after matching, one table of them for each instruction set.
#pragma once

#include "affine.hpp"

namespace hamflow {

struct CompletionKernels {
    float (*affine_cost)(const Neighborhood&, const Affine&);
    Affine (*affine_fit)(const Neighborhood&, const Affine& start);
    Affine (*affine_start)(const Neighborhood&);
};

// Those of the level that active_kernels() has.
const CompletionKernels& completion_kernels();

}  // namespace hamflow
