#include "convolution.hpp"
#include "level.hpp"

namespace hamflow {
namespace portable {
namespace {
#include "simd/portable_dot.inl"
#include "convolution.inl"
}  // namespace
const Convolutions convolutions = {"portable", pack_weights, convolve_row};
}  // namespace portable
}  // namespace hamflow
