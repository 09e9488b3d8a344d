#include "refinement_level.inl"

namespace hamflow {
namespace neon {
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
}  // namespace neon
const RefinementKernels neon_refinement = HAMFLOW_REFINEMENT_TABLE("neon", neon);
}  // namespace hamflow
