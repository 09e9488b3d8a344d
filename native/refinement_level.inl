// Included by every refinement_<level>.cpp, within its namespace.
namespace {
#include "chessboard.inl"
#include "vectors.inl"
#include "linearization.inl"
#include "relaxation.inl"
#include "variational.inl"
#include "stencil.inl"
#include "boundaries.inl"
#include "features.inl"
#include "guards.inl"
}  // namespace
const RefinementKernels refinement = {refine_variational, choose_motions, compute_features,
                                      compute_guards, upsample_linear};
