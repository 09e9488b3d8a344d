#include "completion_kernels.hpp"
#include "level.hpp"
#include "simd/floats.hpp"

namespace hamflow {
namespace neon {
#include "completion_level.inl"
}  // namespace neon
}  // namespace hamflow
