#include "avx2_peak.hpp"
#include "peaks.hpp"

namespace hamflow {
namespace avx2 {
namespace {
#include "peak.inl"
}  // namespace
}  // namespace avx2
const Peaks avx2_peaks = {"avx2", avx2::peak_min_projection, avx2::peak_fused_multiply_add};
}  // namespace hamflow
