// The micro-kernels of one instruction-set level, which run on registers alone.
#pragma once

#include "simd/each_level.hpp"

namespace hamflow {

struct Peaks {
    const char* level;
    // Run some rounds; return the entries of the 4D cost, or the multiply-adds, of one round.
    double (*min_projection)(long long rounds);
    double (*fused_multiply_add)(long long rounds);
};

HAMFLOW_DECLARE_TABLES(Peaks, peaks)

}  // namespace hamflow
