#include "level.hpp"
#include "refinement_kernels.hpp"

namespace hamflow {
namespace avx512 {
#include "refinement_level.inl"
}  // namespace avx512
}  // namespace hamflow
