#include "refinement_level.inl"

namespace hamflow {
namespace avx512 {
namespace {
#include "chessboard.inl"
#include "vectors.inl"
#include "linearization.inl"
#include "relaxation.inl"
#include "variational.inl"
#include "neighborhood.inl"
#include "boundaries.inl"
#include "features.inl"
#include "guards.inl"
}  // namespace
}  // namespace avx512
const RefinementKernels avx512_refinement = HAMFLOW_REFINEMENT_TABLE("avx512", avx512);
}  // namespace hamflow
