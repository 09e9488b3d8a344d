#include "kernels.hpp"
#include "level.hpp"
#include "simd/portable.hpp"
#include "simd/portable_labels.hpp"

namespace hamflow {
namespace portable {
constexpr char level_name[] = "portable";
namespace {
#include "simd/portable_dot.inl"
}  // namespace
#include "kernels_level.inl"
}  // namespace portable
}  // namespace hamflow
