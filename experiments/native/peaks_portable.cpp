#include "portable_peak.hpp"
#include "peaks.hpp"

namespace hamflow {
namespace portable {
namespace {
#include "peak.inl"
}  // namespace
}  // namespace portable
const Peaks portable_peaks = {"portable", portable::peak_min_projection, portable::peak_fused_multiply_add};
}  // namespace hamflow
