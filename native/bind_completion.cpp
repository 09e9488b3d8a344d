// What comes between matching and refinement, and the assessment of the result, for Python.
#include "assessment.hpp"
#include "bind.hpp"
#include "candidates.hpp"
#include "choice.hpp"
#include "components.hpp"
#include "edges.hpp"
#include "geodesic.hpp"
#include "interpolation.hpp"
#include "planes.hpp"
#include "resampling.hpp"
#include "scoring.hpp"
#include "seeds.hpp"

namespace hamflow::bind {

namespace {

void drop_small_components(Out<std::uint8_t, 2> mask, int least) {
    const int h = side(mask.shape(0)), w = side(mask.shape(1));
    without_gil([&] { drop_small(mask.data(), h, w, least); });
}

// The numbers of pixels, all of them within the image.
std::vector<std::int32_t> pixels_of(const In<std::int32_t, 1>& pixel, std::size_t count) {
    if (pixel.shape(0) > max_pixels) throw nb::value_error("pixel: at most 2^30 of them");
    std::vector<std::int32_t> numbers = snapshot(pixel);
    for (const std::int32_t number : numbers)
        if (number < 0 || static_cast<std::size_t>(number) >= count)
            throw nb::value_error("pixel: outside of the image");
    return numbers;
}

void reduce(In<float, 3> image, int factor, Out<float, 3> out) {
    const std::size_t h = image.shape(0), w = image.shape(1), channels = image.shape(2);
    expect_area(h, w);
    expect_area(out.shape(0), out.shape(1));
    if (channels < 1 || channels > 64) throw nb::value_error("1 to 64 channels");
    if (factor < 1 || factor > 1024) throw nb::value_error("factor: 1 to 1024");
    expect_shape(out, "out", {out.shape(0), out.shape(1), channels});
    without_gil([&] {
        reduce_image(image.data(), side(h), side(w), static_cast<int>(channels), factor,
                     side(out.shape(0)), side(out.shape(1)), out.data());
    });
}

void smooth_image(In<float, 3> image, In<float, 1> weights, Out<float, 3> smoothed) {
    const std::size_t h = image.shape(0), w = image.shape(1), channels = image.shape(2);
    expect_area(h, w);
    if (channels < 1 || channels > 64) throw nb::value_error("image: 1 to 64 channels");
    if (weights.shape(0) % 2 == 0 || weights.shape(0) > 1001)
        throw nb::value_error("weights: an odd number up to 1001");
    expect_shape(smoothed, "smoothed", {h, w, channels});
    const Smoothing problem{side(h),      side(w),
                            static_cast<int>(channels), image.data(),
                            static_cast<int>(weights.shape(0) / 2), weights.data(),
                            smoothed.data()};
    without_gil([&] { smooth(problem); });
}

void image_contrasts(In<float, 3> image, Out<float, 2> right, Out<float, 2> down) {
    const std::size_t h = image.shape(0), w = image.shape(1), channels = image.shape(2);
    expect_area(h, w);
    if (channels < 1 || channels > 64) throw nb::value_error("image: 1 to 64 channels");
    expect_shapes({h, w}, "right", right, "down", down);
    without_gil([&] {
        contrasts(image.data(), side(h), side(w), static_cast<int>(channels), right.data(),
                  down.data());
    });
}

int seeds(In<float, 3> flow, In<std::uint8_t, 2> trusted, int cell, Out<std::int32_t, 1> pixel,
          Out<float, 2> place, Out<float, 2> match, Out<float, 1> trust) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    if (cell < 1 || cell > 64) throw nb::value_error("cell: 1 to 64");
    const std::size_t size = static_cast<std::size_t>(cell);
    const std::size_t cells = ((h + size - 1) / size) * ((w + size - 1) / size);
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(trusted, "trusted", {h, w});
    expect_shape(pixel, "pixel", {cells});
    expect_shapes({cells, 2}, "place", place, "match", match);
    expect_shape(trust, "trust", {cells});
    const SeedChoice problem{side(h),      side(w),      flow.data(),  trusted.data(), cell,
                             pixel.data(), place.data(), match.data(), trust.data()};
    int count = 0;
    without_gil([&] { count = choose_seeds(problem); });
    return count;
}

void interpolate_matches(In<float, 2> right, In<float, 2> down, In<std::int32_t, 1> pixel,
                         In<float, 2> place, In<float, 2> match, In<float, 1> trust,
                         std::tuple<int, float, float, int> how, Out<float, 3> flow,
                         Out<float, 2> distance, Maybe<Out<float, 2>> models) {
    const std::size_t h = flow.shape(0), w = flow.shape(1), seeds = pixel.shape(0);
    expect_area(h, w);
    expect_shapes({h, w}, "right", right, "down", down);
    expect_shapes({seeds, 2}, "place", place, "match", match);
    expect_shape(trust, "trust", {seeds});
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(distance, "distance", {h, w});
    if (models) expect_shape(*models, "models", {seeds, 6});
    if (seeds < 1) throw nb::value_error("pixel: at least one seed");
    const std::vector<std::int32_t> places = pixels_of(pixel, h * w);
    const auto [neighbors, reach, tolerance, rounds] = how;
    if (neighbors < 1 || neighbors > 10000 || !(reach > 0) || !(tolerance > 0))
        throw nb::value_error("how: neighbors in 1..10000, reach > 0, tolerance > 0");
    expect_finite("how", reach, tolerance);
    expect_rounds(rounds);
    const Interpolation problem{
        side(h),      side(w),      right.data(), down.data(), static_cast<int>(seeds),
        places.data(), place.data(), match.data(), trust.data(), neighbors,
        reach,        tolerance,    rounds,       flow.data(), distance.data(),
        models ? models->data() : nullptr};
    without_gil([&] { interpolate(problem); });
}

int planes(In<float, 2> place, In<float, 2> match, In<float, 2> models,
           std::tuple<int, int, float> how, Out<double, 2> planes, Out<std::int32_t, 1> plane) {
    const std::size_t seeds = place.shape(0), count = planes.shape(0);
    if (seeds > max_pixels) throw nb::value_error("place: at most 2^30 matches");
    expect_shapes({seeds, 2}, "place", place, "match", match);
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

void motions(In<double, 2> planes, Out<float, 4> motion) {
    const std::size_t count = planes.shape(0), h = motion.shape(1), w = motion.shape(2);
    expect_area(h, w);
    if (count > 255) throw nb::value_error("planes: at most 255");
    expect_shape(planes, "planes", {count, 9});
    expect_shape(motion, "motion", {count, h, w, 2});
    without_gil([&] {
        plane_motions(planes.data(), static_cast<int>(count), side(h), side(w), motion.data());
    });
}

void distances(In<float, 2> right, In<float, 2> down, In<std::uint8_t, 3> source, int rounds,
               Out<float, 3> distance) {
    const std::size_t sets = source.shape(0), h = source.shape(1), w = source.shape(2);
    expect_area(h, w);
    expect_shapes({h, w}, "right", right, "down", down);
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
    expect_shapes({h, w}, "bits", bits0, "bits", bits1);
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
    const std::vector<std::int32_t> places = pixels_of(pixel, h * w);
    const std::size_t stride = features ? features->shape(1) : score_features;
    if (features) expect_shape(*features, "features", {labels, stride, pixels});
    if (stride < score_features || stride > max_candidates)
        throw nb::value_error("features: 20 to 256 of each candidate");
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
                          places.data(), hidden, network.data(),
                          features ? features->data() : nullptr, static_cast<int>(stride),
                          score ? score->data() : nullptr};
    without_gil([&] { score_candidates(problem); });
}

void color_differences(In<float, 4> motion, In<float, 3> first, In<float, 3> second, int step,
                       Out<float, 3> out) {
    const std::size_t labels = motion.shape(0), h = motion.shape(1), w = motion.shape(2);
    const std::size_t channels = first.shape(2);
    expect_area(h, w);
    expect_shape(motion, "motion", {labels, h, w, 2});
    expect_shapes({h, w, channels}, "first", first, "second", second);
    if (labels > max_candidates) throw nb::value_error("motion: at most 256 candidates");
    if (channels < 1 || channels > 64) throw nb::value_error("first: 1 to 64 channels");
    if (step < 1 || step > 1024) throw nb::value_error("step: 1 to 1024");
    const std::size_t by = static_cast<std::size_t>(step);
    expect_shape(out, "out", {labels, (h + by - 1) / by, (w + by - 1) / by});
    const ColorDifference problem{static_cast<int>(labels), side(h),      side(w),
                                  static_cast<int>(channels), step,       motion.data(),
                                  first.data(),             second.data(), out.data()};
    without_gil([&] { compare_colors(problem); });
}

void score_in_context(In<float, 4> features, In<float, 3> fields, In<float, 1> network,
                      Out<float, 3> score) {
    const std::size_t labels = features.shape(0), h = features.shape(2), w = features.shape(3);
    expect_area(h, w);
    expect_shape(features, "features", {labels, choice_features, h, w});
    expect_shape(fields, "fields", {choice_fields, h, w});
    expect_shape(network, "network", {choice_weights()});
    expect_shape(score, "score", {labels, h, w});
    if (labels < 1 || labels > max_candidates)
        throw nb::value_error("features: 1 to 256 candidates");
    const Choice problem{static_cast<int>(labels), side(h),        side(w),     features.data(),
                         fields.data(),            network.data(), score.data()};
    without_gil([&] { score_choices(problem); });
}

void choose(In<std::int32_t, 1> pixel, In<float, 2> unary, In<float, 4> motion, In<float, 2> right,
            In<float, 2> down, std::tuple<float, int> how, Out<std::int32_t, 2> label) {
    const std::size_t labels = motion.shape(0), h = motion.shape(1), w = motion.shape(2);
    expect_area(h, w);
    expect_shape(unary, "unary", {pixel.shape(0), labels});
    expect_shape(motion, "motion", {labels, h, w, 2});
    expect_shapes({h, w}, "right", right, "down", down, "label", label);
    const auto [cap, rounds] = how;
    if (labels < 1 || labels > max_candidates)
        throw nb::value_error("motion: 1 to 256 candidates");
    if (!(cap >= 0)) throw nb::value_error("how: cap >= 0");
    expect_finite("how", cap);
    expect_rounds(rounds);
    const std::vector<std::int32_t> places = pixels_of(pixel, h * w);
    const CandidateProblem problem{
        side(h),      side(w),      static_cast<int>(labels), static_cast<int>(pixel.shape(0)),
        places.data(), unary.data(), motion.data(),           right.data(),
        down.data(),  cap,          rounds,                   label.data()};
    without_gil([&] { choose_candidates(problem); });
}

ThereAndBack ways_of(const In<float, 3>& flow, const In<float, 3>& backward,
                     std::tuple<float, float> hiding, Maybe<Out<float, 2>>& apart,
                     Maybe<Out<std::uint8_t, 2>>& hidden) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shapes({h, w, 2}, "flow", flow, "backward", backward);
    if (apart) expect_shape(*apart, "apart", {h, w});
    if (hidden) expect_shape(*hidden, "hidden", {h, w});
    expect_finite("hiding", std::get<0>(hiding), std::get<1>(hiding));
    return {side(h),
            side(w),
            flow.data(),
            backward.data(),
            std::get<0>(hiding),
            std::get<1>(hiding),
            apart ? apart->data() : nullptr,
            hidden ? hidden->data() : nullptr};
}

void compare_directions(In<float, 3> flow, In<float, 3> backward, std::tuple<float, float> hiding,
                        Maybe<Out<float, 2>> apart, Maybe<Out<std::uint8_t, 2>> hidden) {
    const ThereAndBack problem = ways_of(flow, backward, hiding, apart, hidden);
    without_gil([&] { there_and_back(problem); });
}

void targets(In<float, 3> flow, In<std::uint64_t, 2> first, In<std::uint64_t, 2> second,
             In<float, 2> texture, In<std::uint8_t, 2> trusted, Out<float, 3> out) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shape(flow, "flow", {h, w, 2});
    expect_shapes({h, w}, "first", first, "second", second, "texture", texture, "trusted", trusted);
    expect_shape(out, "out", {h, w, 3});
    const Targets problem{side(h),       side(w),        flow.data(),    first.data(),
                          second.data(), texture.data(), trusted.data(), out.data()};
    without_gil([&] { look_at_targets(problem); });
}

void arrivals(In<float, 3> flow, Out<float, 2> cover) {
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_area(h, w);
    expect_shape(flow, "flow", {h, w, 2});
    expect_shape(cover, "cover", {h, w});
    without_gil([&] { count_arrivals(flow.data(), side(h), side(w), cover.data()); });
}

void assess_flow(In<float, 3> flow, In<float, 3> backward, In<float, 3> first, In<float, 3> second,
                 In<float, 2> cover, In<float, 3> coarse, int scale,
                 std::tuple<float, float> sizes, In<float, 1> network,
                 Maybe<Out<float, 3>> evidence, Out<float, 2> confidence,
                 Out<float, 2> occlusion) {
    Maybe<Out<float, 2>> apart;
    Maybe<Out<std::uint8_t, 2>> mask;
    const ThereAndBack ways = ways_of(flow, backward, {0.0f, 0.0f}, apart, mask);
    const std::size_t h = flow.shape(0), w = flow.shape(1);
    expect_shapes({h, w, feature_channels}, "first", first, "second", second);
    expect_shapes({h, w}, "cover", cover, "confidence", confidence, "occlusion", occlusion);
    expect_area(coarse.shape(0), coarse.shape(1));
    expect_shape(coarse, "coarse", {coarse.shape(0), coarse.shape(1), coarse_evidence});
    expect_shape(network, "network", {assessment_weights});
    if (evidence) expect_shape(*evidence, "evidence", {h, w, all_evidence});
    if (scale < 1) throw nb::value_error("scale: at least 1");
    const auto [unit, size] = sizes;
    expect_finite("sizes", unit, size);
    const Assessment problem{ways,
                             first.data(),
                             second.data(),
                             cover.data(),
                             scale,
                             side(coarse.shape(0)),
                             side(coarse.shape(1)),
                             coarse.data(),
                             unit,
                             size,
                             network.data(),
                             evidence ? evidence->data() : nullptr,
                             confidence.data(),
                             occlusion.data()};
    without_gil([&] { assess(problem); });
}

}  // namespace

void define_completion(nb::module_& m) {
    m.def("reduce", reduce, nb::arg("image"), nb::arg("factor"), out("out"));
    m.def("drop_small", drop_small_components, out("mask"), nb::arg("least"));
    m.def("smooth", smooth_image, nb::arg("image"), nb::arg("weights"), out("smoothed"));
    m.def("contrasts", image_contrasts, nb::arg("image"), out("right"), out("down"));
    m.def("choose_seeds", seeds, nb::arg("flow"), nb::arg("trusted"), nb::arg("cell"), out("pixel"),
          out("place"), out("match"), out("trust"));
    m.def("interpolate", interpolate_matches, nb::arg("right"), nb::arg("down"), nb::arg("pixel"),
          nb::arg("place"), nb::arg("match"), nb::arg("trust"), nb::arg("how"), out("flow"),
          out("distance"), out("models").none() = nb::none());
    m.def("find_planes", planes, nb::arg("place"), nb::arg("match"), nb::arg("models"),
          nb::arg("how"), out("planes"), out("plane"));
    m.def("plane_motions", motions, nb::arg("planes"), out("motion"));
    m.def("geodesic_distances", distances, nb::arg("right"), nb::arg("down"), nb::arg("source"),
          nb::arg("rounds"), out("distance"));
    m.def("score_candidates", score, nb::arg("bits"), nb::arg("motion"), nb::arg("matched"),
          nb::arg("back"), nb::arg("geodesic"), nb::arg("texture"), nb::arg("size"),
          nb::arg("range"), nb::arg("pixel"), nb::arg("network"), out("features").none(),
          out("score").none());
    m.def("color_differences", color_differences, nb::arg("motion"), nb::arg("first"),
          nb::arg("second"), nb::arg("step"), out("out"));
    m.def("score_in_context", score_in_context, nb::arg("features"), nb::arg("fields"),
          nb::arg("network"), out("score"));
    m.def("choose_candidates", choose, nb::arg("pixel"), nb::arg("unary"), nb::arg("motion"),
          nb::arg("right"), nb::arg("down"), nb::arg("how"), out("label"));
    m.def("there_and_back", compare_directions, nb::arg("flow"), nb::arg("backward"),
          nb::arg("hiding"), out("apart").none(), out("hidden").none());
    m.def("look_at_targets", targets, nb::arg("flow"), nb::arg("first"), nb::arg("second"),
          nb::arg("texture"), nb::arg("trusted"), out("out"));
    m.def("count_arrivals", arrivals, nb::arg("flow"), out("cover"));
    m.def("assess", assess_flow, nb::arg("flow"), nb::arg("backward"), nb::arg("first"),
          nb::arg("second"), nb::arg("cover"), nb::arg("coarse"), nb::arg("scale"),
          nb::arg("sizes"), nb::arg("network"), out("evidence").none(), out("confidence"),
          out("occlusion"));
}

}  // namespace hamflow::bind
