#include "kernels.hpp"
#include "level.hpp"
#include "simd/avx512.hpp"
#include "simd/avx512_labels.hpp"
#include "simd/x86_chains.hpp"

namespace hamflow {
namespace avx512 {
constexpr char level_name[] = "avx512";
#include "kernels_level.inl"
}  // namespace avx512
}  // namespace hamflow
