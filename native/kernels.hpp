// The kernels, one table of them for each instruction set, and the slow, obvious reference with
// the same signatures. All arrays are dense and row-major; volumes are h x w x du (or dv).
//
// Ties of inner argmins go to the smallest label; ties of the final argmin (best_labels and the
// rescans) to the smallest |displacement|, then to the negative one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chain_pass.hpp"
#include "relabel.hpp"
#include "simd/each_level.hpp"
#include "window.hpp"

namespace hamflow {

struct Kernels {
    const char* name;

    // QQ: c^u, c^v (eq. 4) as Hamming distances; v_hat, u_hat (both or neither may be null): the
    // inner argmins as labels. A target outside of the image has distance `outside`.
    void (*min_projection)(const BitsPair&, const Window&, std::uint8_t outside, std::uint8_t* cu,
                           std::uint8_t* cv, std::int16_t* v_hat, std::int16_t* u_hat);
    // The CRF's messages (eqs. 8 and 9): min over the sender's labels of c - lam.
    void (*message16)(const BitsPair&, const Window&, Direction, const FixedCost&,
                      const std::int16_t* lam, std::int16_t* out);
    void (*message32)(const BitsPair&, const Window&, Direction, const FloatCost&,
                      const float* lam, float* out);

    // FF: the same for c = -<phi0, phi1>, the target outside costing `outside`.
    void (*float_min_projection)(const PhiPair&, const Window&, float outside, float* cu,
                                 float* cv, std::int16_t* v_hat, std::int16_t* u_hat);
    void (*float_message)(const PhiPair&, const Window&, Direction, float outside,
                          const float* lam, float* out);

    // FQ: the float cost at given inner argmins; and its gradient: grad_phi0, grad_phi1 are
    // overwritten with the derivative of <grad_cu, cu> + <grad_cv, cv>.
    void (*gather)(const PhiPair&, const Window&, float outside, const std::int16_t* v_hat,
                   const std::int16_t* u_hat, float* cu, float* cv);
    void (*scatter)(const PhiPair&, const Window&, const std::int16_t* v_hat,
                    const std::int16_t* u_hat, const float* grad_cu, const float* grad_cv,
                    float* grad_phi0, float* grad_phi1);

    // One pass of the in-plane solver (eq. 7); returns the sum of the chains' minima.
    std::int64_t (*chain_pass16)(const ChainPass16&);
    double (*chain_pass32)(const ChainPass32&);
    // Block moves on the primal side.
    void (*relabel_bits16)(const RelabelingBits16&);
    void (*relabel_bits32)(const RelabelingBits32&);
    void (*relabel_phi)(const RelabelingPhi&);

    // Winner takes all: the labels v that minimize c^v (n x count values, first displacement
    // `first`), then the flow with the best u of the row at that v.
    void (*best_labels_u8)(const std::uint8_t* costs, std::size_t n, int count, int first,
                           std::int16_t* labels);
    void (*best_labels_i16)(const std::int16_t* costs, std::size_t n, int count, int first,
                            std::int16_t* labels);
    void (*best_labels_f32)(const float* costs, std::size_t n, int count, int first,
                            std::int16_t* labels);
    void (*rescan_bits)(const BitsPair&, const Window&, std::uint8_t outside,
                        const std::int16_t* v_labels, float* flow);
    void (*rescan_phi)(const PhiPair&, const Window&, float outside,
                       const std::int16_t* v_labels, float* flow);
};

extern const Kernels reference_kernels;
HAMFLOW_DECLARE_TABLES(Kernels, kernels)

}  // namespace hamflow
