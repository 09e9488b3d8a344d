#include "convolution.hpp"
#include "level.hpp"

namespace hamflow {
namespace neon {
namespace {
#include "simd/portable_dot.inl"
#include "convolution.inl"
}  // namespace
const Convolutions convolutions = {"neon", pack_weights, convolve_row};
}  // namespace neon
}  // namespace hamflow
