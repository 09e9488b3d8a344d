#include "level.inl"
#include "simd/avx512.hpp"
#include "simd/avx512_dot.hpp"
#include "simd/avx512_labels.hpp"
#include "simd/x86_chains.hpp"

namespace hamflow {
namespace avx512 {
namespace {
#include "turn.inl"
#include "bits_tiles.inl"
#include "pixel_tiles.inl"
#include "min_projection.inl"
#include "messages.inl"
#include "scalar_products.inl"
#include "matches.inl"
#include "label_rows.inl"
#include "chains.inl"
#include "winner_takes_all.inl"
#include "relabel.inl"
#include "convolution.inl"
}  // namespace
}  // namespace avx512
const Kernels avx512_kernels = HAMFLOW_KERNEL_TABLE("avx512", avx512);
}  // namespace hamflow
