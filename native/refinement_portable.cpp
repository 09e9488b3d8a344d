#include "level.hpp"
#include "refinement_kernels.hpp"

namespace hamflow {
namespace portable {
#include "refinement_level.inl"
}  // namespace portable
}  // namespace hamflow
