// The micro-kernels of one instruction-set level, which run on registers alone.
#pragma once

namespace hamflow {

struct Peaks {
    const char* level;
    // Run some rounds; return the entries of the 4D cost, or the multiply-adds, of one round.
    double (*min_projection)(long long rounds);
    double (*fused_multiply_add)(long long rounds);
};

extern const Peaks portable_peaks;
#if defined(HAMFLOW_X86)
extern const Peaks avx2_peaks;
extern const Peaks avx512_peaks;
#endif
#if defined(HAMFLOW_NEON)
extern const Peaks neon_peaks;
#endif

}  // namespace hamflow
