#include "level.inl"
#include "simd/avx2.hpp"
#include "simd/avx2_dot.hpp"
#include "simd/avx2_labels.hpp"
#include "simd/x86_chains.hpp"

namespace hamflow {
namespace avx2 {
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
}  // namespace avx2
const Kernels avx2_kernels = HAMFLOW_KERNEL_TABLE("avx2", avx2);
}  // namespace hamflow
