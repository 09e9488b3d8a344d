// What comes after matching, for Python: components, interpolation, the variational model, motion
// boundaries.
#include <cmath>
#include <vector>

#include "bind.hpp"
#include "boundaries.hpp"
#include "components.hpp"
#include "interpolation.hpp"
#include "variational.hpp"

namespace hamflow::bind {

namespace {

void drop_small_components(Out<std::uint8_t, 2> mask, int least) {
    const int h = side(mask.shape(0)), w = side(mask.shape(1));
    without_gil([&] { drop_small(mask.data(), h, w, least); });
}

void interpolate_matches(In<float, 2> right, In<float, 2> down, In<std::int32_t, 1> pixel,
                         In<float, 2> place, In<float, 2> match, In<float, 1> trust,
                         std::tuple<int, float, float, int> how, Out<float, 3> flow,
                         Out<float, 2> distance) {
    const std::size_t h = right.shape(0), w = right.shape(1), seeds = pixel.shape(0);
    if (h * w > (1u << 30)) throw nb::value_error("right: at most 2^30 pixels");
    expect_shape(down, "down", {h, w});
    expect_shape(place, "place", {seeds, 2});
    expect_shape(match, "match", {seeds, 2});
    expect_shape(trust, "trust", {seeds});
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(distance, "distance", {h, w});
    if (seeds < 1) throw nb::value_error("pixel: at least one seed");
    for (std::size_t s = 0; s < seeds; ++s)
        if (pixel.data()[s] < 0 || static_cast<std::size_t>(pixel.data()[s]) >= h * w)
            throw nb::value_error("pixel: outside of the image");
    const auto [neighbors, reach, tolerance, rounds] = how;
    if (neighbors < 1 || neighbors > 10000 || !(reach > 0) || !(tolerance > 0) || rounds < 0)
        throw nb::value_error("how: neighbors in 1..10000, reach > 0, tolerance > 0, rounds >= 0");
    const Interpolation problem{
        side(h),      side(w),      right.data(), down.data(), static_cast<int>(seeds),
        pixel.data(), place.data(), match.data(), trust.data(), neighbors,
        reach,        tolerance,    rounds,       flow.data(), distance.data()};
    without_gil([&] { interpolate(problem); });
}

void variational(In<float, 3> f0, In<float, 3> f1, int first_group,
                 std::tuple<float, float> strength, In<float, 2> weight, In<float, 2> right,
                 In<float, 2> down, std::tuple<float, float, float> terms,
                 std::tuple<int, int, int, float> schedule, Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_shape(f0, "f0", {h, w, feature_channels});
    expect_shape(f1, "f1", {h, w, feature_channels});
    expect_shape(weight, "weight", {h, w});
    expect_shape(right, "right", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(flow, "flow", {h, w, 2});
    const auto [alpha, zeta, epsilon] = terms;
    const auto [warps, inner, sweeps, omega] = schedule;
    if (first_group < 0 || first_group > feature_channels)
        throw nb::value_error("first_group: 0 to 8 channels");
    if (!(alpha >= 0) || !(zeta > 0) || !(epsilon > 0))
        throw nb::value_error("terms: alpha >= 0, zeta > 0, epsilon > 0");
    if (warps < 0 || inner < 0 || sweeps < 0 || !(omega > 0 && omega < 2))
        throw nb::value_error("schedule: counts >= 0, omega in 0..2");
    const Variational problem{side(h),       side(w),     f0.data(),   f1.data(),
                              first_group,   {std::get<0>(strength), std::get<1>(strength)},
                              weight.data(), right.data(), down.data(), alpha,
                              zeta,          epsilon,     warps,       inner,
                              sweeps,        omega,       flow.data()};
    without_gil([&] { refine_variational(problem); });
}

void choose_motions_of(In<float, 3> guide, In<float, 3> f0, In<float, 3> f1, In<float, 2> trust,
                       In<std::uint8_t, 2> band, In<float, 3> flow,
                       std::tuple<int, float, float> neighborhood, std::tuple<float, float> data,
                       std::tuple<float, float, float> agreement,
                       std::tuple<float, float> margins, Out<float, 3> chosen) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_shape(guide, "guide", {h, w, 3});
    expect_shape(f0, "f0", {h, w, feature_channels});
    expect_shape(f1, "f1", {h, w, feature_channels});
    expect_shape(trust, "trust", {h, w});
    expect_shape(band, "band", {h, w});
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(chosen, "chosen", {h, w, 2});
    const auto [radius, color, nearness] = neighborhood;
    const auto [difference, outside] = data;
    const auto [smoothness, apart, distrust] = agreement;
    if (radius < 1 || radius > 100 || !(color >= 0) || !(nearness > 0))
        throw nb::value_error("neighborhood: radius in 1..100, color >= 0, nearness > 0");
    if (!(difference > 0) || !(outside >= 0))
        throw nb::value_error("data: difference > 0, outside >= 0");
    if (!(smoothness >= 0) || !(apart > 0) || !(distrust >= 0))
        throw nb::value_error("agreement: smoothness >= 0, apart > 0, distrust >= 0");
    const Boundaries problem{side(h),     side(w),     guide.data(), f0.data(),
                             f1.data(),   trust.data(), band.data(), radius,
                             color,       nearness,    difference,   outside,
                             smoothness,  apart,       distrust,     std::get<0>(margins),
                             std::get<1>(margins),     flow.data(),  chosen.data()};
    without_gil([&] { choose_motions(problem); });
}

}  // namespace

void define_refinement(nb::module_& m) {
    m.def("drop_small", drop_small_components, out("mask"), nb::arg("least"));
    m.def("interpolate", interpolate_matches, nb::arg("right"), nb::arg("down"), nb::arg("pixel"),
          nb::arg("place"), nb::arg("match"), nb::arg("trust"), nb::arg("how"), out("flow"),
          out("distance"));
    m.def("variational", variational, nb::arg("f0"), nb::arg("f1"), nb::arg("first_group"),
          nb::arg("strength"), nb::arg("weight"), nb::arg("right"), nb::arg("down"),
          nb::arg("terms"), nb::arg("schedule"), out("flow"));
    m.def("choose_motions", choose_motions_of, nb::arg("guide"), nb::arg("f0"), nb::arg("f1"),
          nb::arg("trust"), nb::arg("band"), nb::arg("flow"), nb::arg("neighborhood"),
          nb::arg("data"), nb::arg("agreement"), nb::arg("margins"), out("chosen"));
}

}  // namespace hamflow::bind
