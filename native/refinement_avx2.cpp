#include "level.hpp"
#include "refinement_kernels.hpp"

namespace hamflow {
namespace avx2 {
#include "refinement_level.inl"
}  // namespace avx2
}  // namespace hamflow
