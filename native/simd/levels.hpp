// Which tables of kernels this machine can run, and which one is in use.
#pragma once

#include <vector>

#include "../convolution.hpp"
#include "../kernels.hpp"

namespace hamflow {

// Those that were compiled and that processor and operating system support, worst to best.
std::vector<const Kernels*> available_kernels();

// The best of them, unless another was forced.
const Kernels& active_kernels();
// Its number among those of HAMFLOW_EACH_LEVEL; the reference has that of the portable level.
int active_level();

// The best convolutions of this machine; those of a level that was forced go at most as far as it:
// AVX-VNNI belongs to avx2, AMX to avx512. Unless others were forced, too.
std::vector<const Convolutions*> available_convolutions();
const Convolutions& active_convolutions();
bool force_convolutions(const char* name);

// By name; also "reference". Null or "" goes back to automatic. False, and nothing changes, when
// the name is unknown or the machine cannot run it.
bool force_kernels(const char* name);

}  // namespace hamflow
