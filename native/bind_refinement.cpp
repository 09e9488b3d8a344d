// The refinement, for Python: the variational model, motion boundaries.
#include "bind.hpp"
#include "opposite.hpp"
#include "refinement_kernels.hpp"
#include "temporal.hpp"

namespace hamflow::bind {

namespace {

void variational(In<float, 3> f0, In<float, 3> f1, int first_group,
                 std::tuple<float, float> strength, In<float, 2> weight,
                 Maybe<std::tuple<In<float, 2>, In<float, 2>>> edges,
                 std::tuple<float, float, float, float> terms,
                 std::tuple<int, int, int, float> schedule, float limit, In<float, 3> start,
                 Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_area(h, w);
    expect_shapes({h, w, feature_channels}, "f0", f0, "f1", f1);
    expect_shape(weight, "weight", {h, w});
    if (edges) {
        expect_shapes({h, w}, "edges", std::get<0>(*edges), "edges", std::get<1>(*edges));
    }
    expect_shapes({h, w, 2}, "start", start, "flow", flow);
    const auto [alpha, kappa, zeta, epsilon] = terms;
    const auto [warps, inner, sweeps, omega] = schedule;
    if (first_group < 0 || first_group > compared_channels)
        throw nb::value_error("first_group: 0 to 7 channels");
    if (!(alpha >= 0) || !(kappa >= 0) || !(zeta > 0) || !(epsilon > 0))
        throw nb::value_error("terms: alpha >= 0, kappa >= 0, zeta > 0, epsilon > 0");
    for (const int count : {warps, inner, sweeps})
        if (count < 0 || count > max_steps) throw nb::value_error("schedule: counts in 0..10000");
    if (!(omega > 0 && omega < 2)) throw nb::value_error("schedule: omega in 0..2");
    if (!(limit >= 0)) throw nb::value_error("limit must not be negative");
    expect_finite("strength", std::get<0>(strength), std::get<1>(strength));
    expect_finite("terms", alpha, kappa, zeta, epsilon);
    const Variational problem{side(h),
                              side(w),
                              f0.data(),
                              f1.data(),
                              first_group,
                              {std::get<0>(strength), std::get<1>(strength)},
                              weight.data(),
                              edges ? std::get<0>(*edges).data() : nullptr,
                              edges ? std::get<1>(*edges).data() : nullptr,
                              alpha,
                              kappa,
                              zeta,
                              epsilon,
                              warps,
                              inner,
                              sweeps,
                              omega,
                              limit,
                              start.data(),
                              flow.data()};
    without_gil([&] { refinement_kernels().refine_variational(problem); });
}

void features_of_image(In<float, 3> image, In<float, 1> smoothing, Out<float, 3> features) {
    const std::size_t h = image.shape(0), w = image.shape(1), count = smoothing.shape(0);
    expect_area(h, w);
    expect_shape(image, "image", {h, w, 3});
    expect_shape(features, "features", {h, w, feature_channels});
    if (count % 2 != 1 || count > 1001)
        throw nb::value_error("smoothing: an odd number of weights, at most 1001");
    const Features problem{side(h),         side(w), image.data(), static_cast<int>(count / 2),
                           smoothing.data(), features.data()};
    without_gil([&] { refinement_kernels().compute_features(problem); });
}

void guards_of_flow(In<float, 3> flow, In<float, 2> weight, float boundary, float near,
                    Out<float, 2> right, Out<float, 2> down, Out<float, 2> guarded) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shape(flow, "flow", {h, w, 2});
    expect_shapes({h, w}, "weight", weight, "right", right, "down", down, "guarded", guarded);
    if (!(boundary > 0)) throw nb::value_error("boundary must be positive");
    expect_finite("boundary and near", boundary, near);
    const Guards problem{side(h),      side(w),     flow.data(), weight.data(), boundary, near,
                         right.data(), down.data(), guarded.data()};
    without_gil([&] { refinement_kernels().compute_guards(problem); });
}

void upsample(In<float, 3> field, int factor, Out<float, 3> out) {
    const std::size_t channels = field.shape(2);
    expect_area(field.shape(0), field.shape(1));
    expect_area(out.shape(0), out.shape(1));
    expect_shape(out, "out", {out.shape(0), out.shape(1), channels});
    if (factor < 1 || factor > max_steps) throw nb::value_error("factor: 1 to 10000");
    if (channels > 16) throw nb::value_error("field: at most 16 channels");
    const Upsampling problem{side(field.shape(0)), side(field.shape(1)),
                             static_cast<int>(channels), field.data(), factor,
                             side(out.shape(0)), side(out.shape(1)), out.data()};
    without_gil([&] { refinement_kernels().upsample_linear(problem); });
}

void adopt(In<float, 3> opposite, float tolerance, Out<float, 3> flow) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shapes({h, w, 2}, "flow", flow, "opposite", opposite);
    const Opposite problem{side(h), side(w), opposite.data(), tolerance, flow.data()};
    without_gil([&] { adopt_opposite(problem); });
}

void carry_along(In<float, 3> flow, In<float, 2> confidence, In<float, 3> along, float alike,
                 std::tuple<float, float> hiding, Out<float, 3> expected) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shapes({h, w, 2}, "flow", flow, "along", along);
    expect_shape(confidence, "confidence", {h, w});
    expect_shape(expected, "expected", {h, w, 3});
    if (!(alike >= 0)) throw nb::value_error("alike must not be negative");
    const auto [relative, absolute] = hiding;
    const Carried problem{side(h), side(w),  flow.data(), confidence.data(), along.data(),
                          alike,   relative, absolute,    expected.data()};
    without_gil([&] { carry(problem); });
}

void blend_flows(In<float, 3> measured, In<float, 2> confidence, In<float, 3> expected,
                 In<float, 3> changes, std::tuple<float, float, float> how, Out<float, 3> flow,
                 Out<float, 2> certain) {
    const std::size_t h = measured.shape(0), w = measured.shape(1);
    expect_area(h, w);
    expect_shapes({h, w, 2}, "measured", measured, "flow", flow);
    expect_shapes({h, w}, "confidence", confidence, "certain", certain);
    expect_shapes({h, w, 3}, "expected", expected, "changes", changes);
    const auto [change, relative, apart] = how;
    if (!(change >= 0) || !(relative >= 0) || !(apart >= 0))
        throw nb::value_error("how: change, relative and apart must not be negative");
    const Blended problem{side(h),         side(w),        measured.data(), confidence.data(),
                          expected.data(), changes.data(), change,          relative,
                          apart,           flow.data(),    certain.data()};
    without_gil([&] { blend(problem); });
}

void choose_motions_of(In<float, 3> guide, In<float, 3> f0, In<float, 3> f1, In<float, 2> trust,
                       std::tuple<float, int, int> where,
                       std::tuple<int, float, float> neighborhood, std::tuple<float, float> data,
                       std::tuple<float, float, float> agreement,
                       std::tuple<float, float> margins, Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_area(h, w);
    expect_shape(guide, "guide", {h, w, 3});
    expect_shapes({h, w, feature_channels}, "f0", f0, "f1", f1);
    expect_shape(trust, "trust", {h, w});
    expect_shape(flow, "flow", {h, w, 2});
    const auto [jump, reach, rounds] = where;
    const auto [radius, color, nearness] = neighborhood;
    const auto [difference, outside] = data;
    const auto [smoothness, apart, distrust] = agreement;
    if (!(jump >= 0) || reach < 0 || reach > max_steps || rounds < 0 || rounds > max_rounds)
        throw nb::value_error("where: jump >= 0, reach in 0..10000, rounds in 0..1000");
    expect_finite("where", jump);
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
    const Boundaries problem{side(h),    side(w),      guide.data(), f0.data(),
                             f1.data(),  trust.data(), jump,         reach,
                             rounds,     radius,       color,        nearness,
                             difference, outside,      smoothness,   apart,
                             distrust,   std::get<0>(margins),       std::get<1>(margins),
                             flow.data()};
    without_gil([&] { refinement_kernels().choose_motions(problem); });
}

}  // namespace

void define_refinement(nb::module_& m) {
    m.def("variational", variational, nb::arg("f0"), nb::arg("f1"), nb::arg("first_group"),
          nb::arg("strength"), nb::arg("weight"), nb::arg("edges").none(), nb::arg("terms"),
          nb::arg("schedule"), nb::arg("limit"), nb::arg("start"), out("flow"));
    m.def("features", features_of_image, nb::arg("image"), nb::arg("smoothing"), out("features"));
    m.def("guards", guards_of_flow, nb::arg("flow"), nb::arg("weight"), nb::arg("boundary"),
          nb::arg("near"), out("right"), out("down"), out("guarded"));
    m.def("upsample", upsample, nb::arg("field"), nb::arg("factor"), out("out"));
    m.def("adopt_opposite", adopt, nb::arg("opposite"), nb::arg("tolerance"), out("flow"));
    m.def("carry", carry_along, nb::arg("flow"), nb::arg("confidence"), nb::arg("along"),
          nb::arg("alike"), nb::arg("hiding"), out("expected"));
    m.def("blend", blend_flows, nb::arg("measured"), nb::arg("confidence"), nb::arg("expected"),
          nb::arg("changes"), nb::arg("how"), out("flow"), out("certain"));
    m.def("choose_motions", choose_motions_of, nb::arg("guide"), nb::arg("f0"), nb::arg("f1"),
          nb::arg("trust"), nb::arg("where"), nb::arg("neighborhood"), nb::arg("data"),
          nb::arg("agreement"), nb::arg("margins"), out("flow"));
}

}  // namespace hamflow::bind
