#include "kernels.hpp"
#include "level.hpp"
#include "simd/neon.hpp"
#include "simd/neon_labels.hpp"

namespace hamflow {
namespace neon {
constexpr char level_name[] = "neon";
#include "kernels_level.inl"
}  // namespace neon
}  // namespace hamflow
