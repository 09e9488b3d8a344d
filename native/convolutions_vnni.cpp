#include "convolution.hpp"
#include "level.hpp"
#include "simd/vnni_dot.hpp"

namespace hamflow {
namespace vnni {
namespace {
#include "convolution.inl"
}  // namespace
const Convolutions convolutions = {"vnni", pack_weights, convolve_row};
}  // namespace vnni
}  // namespace hamflow
