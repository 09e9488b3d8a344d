#include "avx512_peak.hpp"
#include "peaks.hpp"

namespace hamflow {
namespace avx512 {
namespace {
#include "peak.inl"
}  // namespace
}  // namespace avx512
const Peaks avx512_peaks = {"avx512", avx512::peak_min_projection, avx512::peak_fused_multiply_add};
}  // namespace hamflow
