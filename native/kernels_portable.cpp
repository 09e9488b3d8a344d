#include "level.inl"
#include "simd/portable.hpp"
#include "simd/portable_labels.hpp"

namespace hamflow {
namespace portable {
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
#include "simd/portable_dot.inl"
#include "convolution.inl"
}  // namespace
}  // namespace portable
const Kernels portable_kernels = HAMFLOW_KERNEL_TABLE("portable", portable);
}  // namespace hamflow
