// Variational subpixel refinement of a flow: see variational.inl.
#pragma once

namespace hamflow {

// Features of a pixel, interleaved; the last one only fills the vector and is not compared.
constexpr int feature_channels = 8, compared_channels = 7;

// E(flow) = sum_i weight_i * sum_g strength_g
//             * psi(sum_{c in g} theta_c (f1_c(i + flow_i) - f0_c(i))^2)
//         + alpha * sum_{i~j} edge_ij * psi(|grad flow|^2),   psi(s) = sqrt(s + epsilon^2),
// theta_c = 1 / (|grad f_c|^2 + zeta^2), minimized by warps of f1, fixed-point iterations of psi'
// and red-black over-relaxation.
struct Variational {
    int h, w;
    const float *f0, *f1;        // h x w x feature_channels
    int first_group;             // how many channels belong to the first group
    float strength[2];           // of the two groups
    const float* weight;         // h x w, of the data term; 0 where a pixel has no partner
    const float *right, *down;   // h x w, edge weights to the neighbors beside those of the image,
                                 // which are exp(-kappa * mean contrast of the first three
                                 // channels); or null
    float alpha, kappa, zeta, epsilon;
    int warps, inner, sweeps;
    float omega;                 // over-relaxation
    float limit;                 // how far a component may move in all
    const float* start;          // h x w x 2
    float* flow;                 // h x w x 2, apart from it
};

}  // namespace hamflow
