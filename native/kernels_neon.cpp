#include "kernels.hpp"
#include "level.hpp"
#include "simd/neon.hpp"
#include "simd/neon_labels.hpp"

namespace hamflow {
namespace neon {
constexpr char level_name[] = "neon";
namespace {
#include "simd/portable_dot.inl"
}  // namespace
#include "kernels_level.inl"
}  // namespace neon
}  // namespace hamflow
