// Compiled for AVX2 and AVX-VNNI, for which avx2_dot.hpp has other instructions.
#include "convolution.hpp"
#include "level.hpp"
#include "simd/avx2_dot.hpp"

namespace hamflow {
namespace avxvnni {
namespace {
#include "convolution.inl"
}  // namespace
const Convolutions convolutions = {"avxvnni", pack_weights, convolve_row};
}  // namespace avxvnni
}  // namespace hamflow
