#include "completion_kernels.hpp"
#include "level.hpp"
#include "simd/floats.hpp"

namespace hamflow {
namespace avx2 {
#include "completion_level.inl"
}  // namespace avx2
}  // namespace hamflow
