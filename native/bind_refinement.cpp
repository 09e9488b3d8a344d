// The refinement, for Python: the variational model, motion boundaries.
#include "bind.hpp"
#include "boundaries.hpp"
#include "variational.hpp"

namespace hamflow::bind {

namespace {

void variational(In<float, 3> f0, In<float, 3> f1, int first_group,
                 std::tuple<float, float> strength, In<float, 2> weight, In<float, 2> right,
                 In<float, 2> down, std::tuple<float, float, float> terms,
                 std::tuple<int, int, int, float> schedule, Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_area(h, w);
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
    for (const int count : {warps, inner, sweeps})
        if (count < 0 || count > max_steps) throw nb::value_error("schedule: counts in 0..10000");
    if (!(omega > 0 && omega < 2)) throw nb::value_error("schedule: omega in 0..2");
    expect_finite("strength", std::get<0>(strength), std::get<1>(strength));
    expect_finite("terms", alpha, zeta, epsilon);
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
    expect_area(h, w);
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
    expect_finite("neighborhood", color, nearness);
    expect_finite("data", difference, outside);
    expect_finite("agreement", smoothness, apart, distrust);
    expect_finite("margins", std::get<0>(margins), std::get<1>(margins));
    const Boundaries problem{side(h),     side(w),     guide.data(), f0.data(),
                             f1.data(),   trust.data(), band.data(), radius,
                             color,       nearness,    difference,   outside,
                             smoothness,  apart,       distrust,     std::get<0>(margins),
                             std::get<1>(margins),     flow.data(),  chosen.data()};
    without_gil([&] { choose_motions(problem); });
}

}  // namespace

void define_refinement(nb::module_& m) {
    m.def("variational", variational, nb::arg("f0"), nb::arg("f1"), nb::arg("first_group"),
          nb::arg("strength"), nb::arg("weight"), nb::arg("right"), nb::arg("down"),
          nb::arg("terms"), nb::arg("schedule"), out("flow"));
    m.def("choose_motions", choose_motions_of, nb::arg("guide"), nb::arg("f0"), nb::arg("f1"),
          nb::arg("trust"), nb::arg("band"), nb::arg("flow"), nb::arg("neighborhood"),
          nb::arg("data"), nb::arg("agreement"), nb::arg("margins"), out("chosen"));
}

}  // namespace hamflow::bind
