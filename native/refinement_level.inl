// What the .inl files of the refinement need: included first by every refinement_<isa>.cpp,
// outside of its namespace.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "pages.hpp"
#include "refinement_kernels.hpp"
#include "simd/common.hpp"
#include "threads.hpp"

#define HAMFLOW_REFINEMENT_TABLE(name, ns)                                             \
    {                                                                                  \
        name, ns::refine_variational, ns::choose_motions, ns::compute_features,        \
            ns::compute_guards, ns::upsample_linear                                    \
    }
