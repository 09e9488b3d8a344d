#include "completion_kernels.hpp"
#include "level.hpp"
#include "simd/floats.hpp"

namespace hamflow {
namespace avx512 {
#include "completion_level.inl"
}  // namespace avx512
}  // namespace hamflow
