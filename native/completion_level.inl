// Included by every completion_<level>.cpp, within its namespace.
namespace {
#include "affine_fits.inl"
#include "assessment.inl"
#include "beliefs.inl"
#include "choice.inl"
#include "homographies.inl"
#include "scoring.inl"
}  // namespace
const CompletionKernels completion = {
    affine_cost,        affine_fit,       affine_start,  smallest,       plane_score,
    plane_members,      plane_window,     plane_equations, plane_motion, count_support,
    describe_candidate, judge_candidates, compare_colors_row, choice_bounded, choice_layer,
    choice_halved,      choice_shared,    sweep_strip,   there_and_back, assess};
