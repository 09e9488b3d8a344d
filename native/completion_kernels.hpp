// The kernels of what comes after matching, one table of them for each instruction set.
#pragma once

#include "affine.hpp"
#include "assessment.hpp"
#include "candidates.hpp"
#include "choice.hpp"
#include "planes.hpp"
#include "scoring.hpp"
#include "simd/each_level.hpp"

namespace hamflow {

struct CompletionKernels {
    float (*affine_cost)(const Neighborhood&, const Affine&);
    Affine (*affine_fit)(const Neighborhood&, const Affine& start);
    Affine (*affine_start)(const Neighborhood&);
    int (*smallest)(const float* values, int count);

    float (*plane_score)(const PlaneMatches&, const float* homography, float tolerance);
    int (*plane_members)(const PlaneMatches&, const float* homography, float tolerance,
                         int* members);
    int (*plane_window)(const PlaneMatches&, float cx, float cy, float size, const float* affine,
                        float tolerance, int* members);
    void (*plane_equations)(const PlanePoints&, const double* g, bool weighted, PlaneEquations&);
    void (*plane_motion)(const float* homography, int y, int w, float* motion);

    void (*count_support)(const ScoringPlan&, const std::uint8_t* mask, std::uint32_t* counts);
    void (*describe_candidate)(const Scoring&, const ScoringPlan&, int label,
                               std::uint32_t* targets, std::uint32_t* support);
    void (*judge_candidates)(const Scoring&, const ScoringPlan&, int begin, int end);

    void (*compare_colors_row)(const ColorDifference&, int label, int row);
    void (*choice_bounded)(const Choice&, int label, const FeatureMaps& out);
    void (*choice_layer)(const ChoiceLayer&, int begin, int end);
    void (*choice_halved)(const FeatureMaps& in, const FeatureMaps& out, int channels, int begin,
                          int end);
    void (*choice_shared)(const FeatureMaps* all, int labels, int channels, const FeatureMaps& out,
                          int begin, int end);

    void (*sweep_strip)(const Beliefs&, bool rows, int begin, int end);

    void (*there_and_back)(const ThereAndBack&, int begin, int end);
    void (*assess)(const Assessment&, int begin, int end);
};

HAMFLOW_DECLARE_TABLES(CompletionKernels, completion)

// Those of the level in use.
const CompletionKernels& completion_kernels();

}  // namespace hamflow
