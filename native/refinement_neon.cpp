#include "level.hpp"
#include "refinement_kernels.hpp"

namespace hamflow {
namespace neon {
#include "refinement_level.inl"
}  // namespace neon
}  // namespace hamflow
