#include "refinement_level.inl"

namespace hamflow {
namespace portable {
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
}  // namespace portable
const RefinementKernels portable_refinement = HAMFLOW_REFINEMENT_TABLE("portable", portable);
}  // namespace hamflow
