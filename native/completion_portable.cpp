#include "completion_kernels.hpp"
#include "level.hpp"
#include "simd/floats.hpp"

namespace hamflow {
namespace portable {
#include "completion_level.inl"
}  // namespace portable
}  // namespace hamflow
