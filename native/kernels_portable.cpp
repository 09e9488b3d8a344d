#include "kernels.hpp"
#include "level.hpp"
#include "simd/portable.hpp"
#include "simd/portable_labels.hpp"

namespace hamflow {
namespace portable {
constexpr char level_name[] = "portable";
#include "kernels_level.inl"
}  // namespace portable
}  // namespace hamflow
