#include "neon_peak.hpp"
#include "peaks.hpp"

namespace hamflow {
namespace neon {
namespace {
#include "peak.inl"
}  // namespace
}  // namespace neon
const Peaks neon_peaks = {"neon", neon::peak_min_projection, neon::peak_fused_multiply_add};
}  // namespace hamflow
