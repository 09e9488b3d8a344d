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

// Loops over rows that do not overlap are vectorized by the compiler, for each level in the same
// order of operations: results have the same bytes on all of them.
#if defined(__clang__)
#define HAMFLOW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HAMFLOW_INDEPENDENT _Pragma("GCC ivdep")
#else
#define HAMFLOW_INDEPENDENT
#endif
#if defined(__GNUC__) || defined(__clang__)
#define HAMFLOW_RESTRICT __restrict__
#else
#define HAMFLOW_RESTRICT
#endif

#define HAMFLOW_REFINEMENT_TABLE(name, ns)                                             \
    {                                                                                  \
        name, ns::refine_variational, ns::choose_motions, ns::compute_features,        \
            ns::compute_guards, ns::upsample_linear                                    \
    }
