#include "kernels.hpp"
#include "level.hpp"
#include "simd/avx2.hpp"
#include "simd/avx2_labels.hpp"

namespace hamflow {
namespace avx2 {
constexpr char level_name[] = "avx2";
#include "kernels_level.inl"
}  // namespace avx2
}  // namespace hamflow
