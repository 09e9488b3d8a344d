#include "refinement_level.inl"

namespace hamflow {
namespace avx2 {
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
}  // namespace avx2
const RefinementKernels avx2_refinement = HAMFLOW_REFINEMENT_TABLE("avx2", avx2);
}  // namespace hamflow
