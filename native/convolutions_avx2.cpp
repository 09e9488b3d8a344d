#include "convolution.hpp"
#include "level.hpp"
#include "simd/avx2_dot.hpp"

namespace hamflow {
namespace avx2 {
namespace {
#include "convolution.inl"
}  // namespace
const Convolutions convolutions = {"avx2", pack_weights, convolve_row};
}  // namespace avx2
}  // namespace hamflow
