// Which tables of kernels this machine can run, and which one is in use.
#pragma once

#include <vector>

#include "../kernels.hpp"

namespace hamflow {

// Those that were compiled and that processor and operating system support, worst to best.
std::vector<const Kernels*> available_kernels();

// The best of them, unless another was forced.
const Kernels& active_kernels();
// Its number among those of HAMFLOW_EACH_LEVEL; the reference has that of the portable level.
int active_level();

// By name; also "reference". Null or "" goes back to automatic. False, and nothing changes, when
// the name is unknown or the machine cannot run it.
bool force_kernels(const char* name);

}  // namespace hamflow
