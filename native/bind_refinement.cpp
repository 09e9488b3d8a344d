// What comes after matching, for Python: components, interpolation, the variational model, motion
// boundaries.
#include <cmath>

#include "bind.hpp"
#include "boundaries.hpp"
#include "candidates.hpp"
#include "components.hpp"
#include "features.hpp"
#include "geodesic.hpp"
#include "interpolation.hpp"
#include "planes.hpp"
#include "scoring.hpp"
#include "variational.hpp"

namespace hamflow::bind {

namespace {

constexpr std::size_t max_pixels = 1u << 30;  // their numbers, and twice as many, are int
constexpr std::size_t max_candidates = 256;
constexpr int max_rounds = 1000, max_steps = 10000;

void expect_area(std::size_t h, std::size_t w) {
    if (static_cast<std::size_t>(side(h)) * side(w) > max_pixels)
        throw nb::value_error("an image must have at most 2^30 pixels");
}

void expect_rounds(int rounds) {
    if (rounds < 0 || rounds > max_rounds) throw nb::value_error("rounds: from 0 to 1000");
}

template <class... Numbers>
void expect_finite(const char* name, Numbers... numbers) {
    if (!(std::isfinite(numbers) && ...))
        throw nb::value_error((std::string(name) + ": only finite numbers").c_str());
}

void drop_small_components(Out<std::uint8_t, 2> mask, int least) {
    const int h = side(mask.shape(0)), w = side(mask.shape(1));
    without_gil([&] { drop_small(mask.data(), h, w, least); });
}

void expect_pixels(const In<std::int32_t, 1>& pixel, std::size_t count) {
    if (pixel.shape(0) > max_pixels) throw nb::value_error("pixel: at most 2^30 of them");
    for (std::size_t k = 0; k < pixel.shape(0); ++k)
        if (pixel.data()[k] < 0 || static_cast<std::size_t>(pixel.data()[k]) >= count)
            throw nb::value_error("pixel: outside of the image");
}

void interpolate_matches(In<float, 2> right, In<float, 2> down, In<std::int32_t, 1> pixel,
                         In<float, 2> place, In<float, 2> match, In<float, 1> trust,
                         std::tuple<int, float, float, int> how, Out<float, 3> flow,
                         Out<float, 2> distance, Maybe<Out<float, 2>> models) {
    const std::size_t h = flow.shape(0), w = flow.shape(1), seeds = pixel.shape(0);
    expect_area(h, w);
    expect_shape(right, "right", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(place, "place", {seeds, 2});
    expect_shape(match, "match", {seeds, 2});
    expect_shape(trust, "trust", {seeds});
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(distance, "distance", {h, w});
    if (models) expect_shape(*models, "models", {seeds, 6});
    if (seeds < 1) throw nb::value_error("pixel: at least one seed");
    expect_pixels(pixel, h * w);
    const auto [neighbors, reach, tolerance, rounds] = how;
    if (neighbors < 1 || neighbors > 10000 || !(reach > 0) || !(tolerance > 0))
        throw nb::value_error("how: neighbors in 1..10000, reach > 0, tolerance > 0");
    expect_finite("how", reach, tolerance);
    expect_rounds(rounds);
    const Interpolation problem{
        side(h),      side(w),      right.data(), down.data(), static_cast<int>(seeds),
        pixel.data(), place.data(), match.data(), trust.data(), neighbors,
        reach,        tolerance,    rounds,       flow.data(), distance.data(),
        models ? models->data() : nullptr};
    without_gil([&] { interpolate(problem); });
}

int planes(In<float, 2> place, In<float, 2> match, In<float, 2> models,
           std::tuple<int, int, float> how, Out<double, 2> planes, Out<std::int32_t, 1> plane) {
    const std::size_t seeds = place.shape(0), count = planes.shape(0);
    if (seeds > max_pixels) throw nb::value_error("place: at most 2^30 matches");
    expect_shape(place, "place", {seeds, 2});
    expect_shape(match, "match", {seeds, 2});
    expect_shape(models, "models", {seeds, 6});
    expect_shape(planes, "planes", {count, 9});
    expect_shape(plane, "plane", {seeds});
    const auto [tries, least, tolerance] = how;
    if (count > 255) throw nb::value_error("planes: at most 255");
    if (tries < 0 || tries > 100000 || least < 1 || !(tolerance > 0))
        throw nb::value_error("how: tries in 0..100000, least >= 1, tolerance > 0");
    expect_finite("how", tolerance);
    const PlaneSearch search{static_cast<int>(seeds), place.data(), match.data(), models.data(),
                             static_cast<int>(count), tries,        least,        tolerance,
                             planes.data(),           plane.data()};
    int found = 0;
    without_gil([&] { found = find_planes(search); });
    return found;
}

void distances(In<float, 2> right, In<float, 2> down, In<std::uint8_t, 3> source, int rounds,
               Out<float, 3> distance) {
    const std::size_t sets = source.shape(0), h = source.shape(1), w = source.shape(2);
    expect_area(h, w);
    expect_shape(right, "right", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(distance, "distance", {sets, h, w});
    if (sets > max_candidates) throw nb::value_error("source: at most 256 sets");
    expect_rounds(rounds);
    const Geodesic problem{side(h),      side(w),       static_cast<int>(sets), right.data(),
                           down.data(),  source.data(), rounds,                 distance.data()};
    without_gil([&] { geodesic_distances(problem); });
}

void score(std::tuple<In<std::uint64_t, 2>, In<std::uint64_t, 2>> bits, In<float, 4> motion,
           std::tuple<In<float, 3>, In<std::uint8_t, 2>> matched,
           std::tuple<In<float, 3>, In<std::uint8_t, 2>> back, In<float, 3> geodesic,
           In<float, 2> texture, In<float, 1> size, std::tuple<float, float, float, float> range,
           In<std::int32_t, 1> pixel, In<float, 1> network, Maybe<Out<float, 3>> features,
           Maybe<Out<float, 2>> score) {
    const std::size_t labels = motion.shape(0), h = motion.shape(1), w = motion.shape(2);
    const std::size_t pixels = pixel.shape(0);
    expect_area(h, w);
    expect_shape(motion, "motion", {labels, h, w, 2});
    const auto& [bits0, bits1] = bits;
    expect_shape(bits0, "bits", {h, w});
    expect_shape(bits1, "bits", {h, w});
    for (const auto* pair : {&matched, &back}) {
        expect_shape(std::get<0>(*pair), "a flow", {h, w, 2});
        expect_shape(std::get<1>(*pair), "a mask", {h, w});
    }
    expect_shape(geodesic, "geodesic", {labels, h, w});
    expect_shape(texture, "texture", {h, w});
    expect_shape(size, "size", {labels});
    if (labels < 1 || labels > max_candidates)
        throw nb::value_error("motion: 1 to 256 candidates");
    std::apply([](auto... ends) { expect_finite("range", ends...); }, range);
    expect_pixels(pixel, h * w);
    if (features) expect_shape(*features, "features", {pixels, labels, score_features});
    if (score) expect_shape(*score, "score", {pixels, labels});
    int hidden = 1;
    const auto weights = [](int n) { return 2 * score_features + n * (score_features + n + 3); };
    while (hidden < 64 && weights(hidden) < static_cast<int>(network.shape(0))) ++hidden;
    if (static_cast<std::size_t>(weights(hidden)) != network.shape(0))
        throw nb::value_error("network has the wrong shape");
    const Scoring problem{side(h), side(w), static_cast<int>(labels), bits0.data(), bits1.data(),
                          motion.data(), std::get<0>(matched).data(), std::get<1>(matched).data(),
                          std::get<0>(back).data(), std::get<1>(back).data(), geodesic.data(),
                          texture.data(), size.data(), {std::get<0>(range), std::get<1>(range)},
                          {std::get<2>(range), std::get<3>(range)}, static_cast<int>(pixels),
                          pixel.data(), hidden, network.data(),
                          features ? features->data() : nullptr, score ? score->data() : nullptr};
    without_gil([&] { score_candidates(problem); });
}

void choose(In<std::int32_t, 1> pixel, In<float, 2> unary, In<float, 4> motion, In<float, 2> right,
            In<float, 2> down, std::tuple<float, int> how, Out<std::int32_t, 2> label) {
    const std::size_t labels = motion.shape(0), h = motion.shape(1), w = motion.shape(2);
    expect_area(h, w);
    expect_shape(unary, "unary", {pixel.shape(0), labels});
    expect_shape(motion, "motion", {labels, h, w, 2});
    expect_shape(right, "right", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(label, "label", {h, w});
    const auto [cap, rounds] = how;
    if (labels < 1 || labels > max_candidates)
        throw nb::value_error("motion: 1 to 256 candidates");
    if (!(cap >= 0)) throw nb::value_error("how: cap >= 0");
    expect_finite("how", cap);
    expect_rounds(rounds);
    expect_pixels(pixel, h * w);
    const CandidateProblem problem{
        side(h),      side(w),      static_cast<int>(labels), static_cast<int>(pixel.shape(0)),
        pixel.data(), unary.data(), motion.data(),            right.data(),
        down.data(),  cap,          rounds,                   label.data()};
    without_gil([&] { choose_candidates(problem); });
}

void variational(In<float, 3> f0, In<float, 3> f1, int first_group,
                 std::tuple<float, float> strength, In<float, 2> weight,
                 Maybe<std::tuple<In<float, 2>, In<float, 2>>> edges,
                 std::tuple<float, float, float, float> terms,
                 std::tuple<int, int, int, float> schedule, float limit, In<float, 3> start,
                 Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_area(h, w);
    expect_shape(f0, "f0", {h, w, feature_channels});
    expect_shape(f1, "f1", {h, w, feature_channels});
    expect_shape(weight, "weight", {h, w});
    if (edges) {
        expect_shape(std::get<0>(*edges), "edges", {h, w});
        expect_shape(std::get<1>(*edges), "edges", {h, w});
    }
    expect_shape(start, "start", {h, w, 2});
    expect_shape(flow, "flow", {h, w, 2});
    const auto [alpha, kappa, zeta, epsilon] = terms;
    const auto [warps, inner, sweeps, omega] = schedule;
    if (first_group < 0 || first_group > feature_channels)
        throw nb::value_error("first_group: 0 to 8 channels");
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
    without_gil([&] { refine_variational(problem); });
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
    without_gil([&] { compute_features(problem); });
}

void guards_of_flow(In<float, 3> flow, In<float, 2> weight, float boundary, float near,
                    Out<float, 2> right, Out<float, 2> down, Out<float, 2> guarded) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(weight, "weight", {h, w});
    expect_shape(right, "right", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(guarded, "guarded", {h, w});
    if (!(boundary > 0)) throw nb::value_error("boundary must be positive");
    expect_finite("boundary and near", boundary, near);
    const Guards problem{side(h),      side(w),     flow.data(), weight.data(), boundary, near,
                         right.data(), down.data(), guarded.data()};
    without_gil([&] { compute_guards(problem); });
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
    without_gil([&] { upsample_linear(problem); });
}

void choose_motions_of(In<float, 3> guide, In<float, 3> f0, In<float, 3> f1, In<float, 2> trust,
                       std::tuple<float, int, int> where,
                       std::tuple<int, float, float> neighborhood, std::tuple<float, float> data,
                       std::tuple<float, float, float> agreement,
                       std::tuple<float, float> margins, Out<float, 3> flow) {
    const std::size_t h = f0.shape(0), w = f0.shape(1);
    expect_area(h, w);
    expect_shape(guide, "guide", {h, w, 3});
    expect_shape(f0, "f0", {h, w, feature_channels});
    expect_shape(f1, "f1", {h, w, feature_channels});
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
    without_gil([&] { choose_motions(problem); });
}

}  // namespace

void define_refinement(nb::module_& m) {
    m.def("drop_small", drop_small_components, out("mask"), nb::arg("least"));
    m.def("interpolate", interpolate_matches, nb::arg("right"), nb::arg("down"), nb::arg("pixel"),
          nb::arg("place"), nb::arg("match"), nb::arg("trust"), nb::arg("how"), out("flow"),
          out("distance"), out("models").none() = nb::none());
    m.def("find_planes", planes, nb::arg("place"), nb::arg("match"), nb::arg("models"),
          nb::arg("how"), out("planes"), out("plane"));
    m.def("geodesic_distances", distances, nb::arg("right"), nb::arg("down"), nb::arg("source"),
          nb::arg("rounds"), out("distance"));
    m.def("score_candidates", score, nb::arg("bits"), nb::arg("motion"), nb::arg("matched"),
          nb::arg("back"), nb::arg("geodesic"), nb::arg("texture"), nb::arg("size"),
          nb::arg("range"), nb::arg("pixel"), nb::arg("network"), out("features").none(),
          out("score").none());
    m.def("choose_candidates", choose, nb::arg("pixel"), nb::arg("unary"), nb::arg("motion"),
          nb::arg("right"), nb::arg("down"), nb::arg("how"), out("label"));
    m.def("variational", variational, nb::arg("f0"), nb::arg("f1"), nb::arg("first_group"),
          nb::arg("strength"), nb::arg("weight"), nb::arg("edges").none(), nb::arg("terms"),
          nb::arg("schedule"), nb::arg("limit"), nb::arg("start"), out("flow"));
    m.def("features", features_of_image, nb::arg("image"), nb::arg("smoothing"), out("features"));
    m.def("guards", guards_of_flow, nb::arg("flow"), nb::arg("weight"), nb::arg("boundary"),
          nb::arg("near"), out("right"), out("down"), out("guarded"));
    m.def("upsample", upsample, nb::arg("field"), nb::arg("factor"), out("out"));
    m.def("choose_motions", choose_motions_of, nb::arg("guide"), nb::arg("f0"), nb::arg("f1"),
          nb::arg("trust"), nb::arg("where"), nb::arg("neighborhood"), nb::arg("data"),
          nb::arg("agreement"), nb::arg("margins"), out("flow"));
}

}  // namespace hamflow::bind
