// What synthetic scenes are rendered with, for Python.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bind.hpp"
#include "compositing.hpp"
#include "mesh.hpp"

namespace hamflow::bind {

namespace {

Texels texels_of(const In<std::uint64_t, 2>& words) {
    if (words.shape(0) < 2 || words.shape(1) < 2 || words.shape(0) > 65536 ||
        words.shape(1) > 65536)
        throw nb::value_error("words: 2 to 65536 texels in each direction");
    return {words.data(), static_cast<int>(words.shape(1)), static_cast<int>(words.shape(0))};
}

void look_up_texels(In<std::uint64_t, 2> words, In<float, 1> x, In<float, 1> y,
                    Out<std::uint16_t, 2> lanes) {
    const Texels texels = texels_of(words);
    const std::size_t n = x.shape(0);
    expect_shape(y, "y", {n});
    expect_shape(lanes, "lanes", {n, 4});
    without_gil([&] { look_up(texels, n, x.data(), y.data(), lanes.data()); });
}

void texels_of_plane(In<float, 2> matrix, In<float, 2> places, std::tuple<float, float> nowhere,
                     bool solid, In<float, 1> x, In<float, 1> y, Out<float, 1> at_x,
                     Out<float, 1> at_y) {
    const std::size_t n = x.shape(0), levels = places.shape(0);
    expect_shape(matrix, "matrix", {3, 3});
    if (levels < 1 || levels > 16) throw nb::value_error("places: 1 to 16 copies");
    expect_shape(places, "places", {levels, 4});
    expect_shapes({n}, "y", y, "at_x", at_x, "at_y", at_y);
    const Atlas atlas{places.data(), static_cast<int>(levels), std::get<0>(nowhere),
                      std::get<1>(nowhere), solid};
    without_gil([&] {
        plane_texels(matrix.data(), atlas, n, x.data(), y.data(), at_x.data(), at_y.data());
    });
}

std::size_t find_pixels(In<float, 2> image, std::tuple<int, int, int, int> window, float least,
                        Out<std::int64_t, 1> index, Out<float, 1> x, Out<float, 1> y) {
    const int h = side(image.shape(0)), w = side(image.shape(1));
    const auto [left, top, right, bottom] = window;
    if (left < 0 || top < 0 || right < left || bottom < top || right > w || bottom > h)
        throw nb::value_error("window: outside of the image");
    const auto n = static_cast<std::size_t>(right - left) * static_cast<std::size_t>(bottom - top);
    expect_shapes({n}, "index", index, "x", x, "y", y);
    const int box[] = {left, top, right, bottom};
    std::size_t found = 0;
    without_gil([&] {
        found = pixels_above(image.data(), w, box, least, index.data(), x.data(), y.data());
    });
    return found;
}

void paint_pixels(In<std::int64_t, 1> index, In<std::uint16_t, 2> lanes,
                  Maybe<std::tuple<In<float, 1>, In<float, 1>, In<float, 1>>> fog,
                  Out<float, 2> light, Out<float, 3> total) {
    const std::size_t n = index.shape(0), pixels = light.size();
    expect_shape(lanes, "lanes", {n, 4});
    expect_shape(total, "total", {light.shape(0), light.shape(1), 3});
    const std::vector<std::int64_t> places = snapshot(index);
    for (const std::int64_t place : places)
        if (place < 0 || static_cast<std::size_t>(place) >= pixels)
            throw nb::value_error("index: outside of the image");
    Fog mist{};
    if (fog) {
        const auto& [rest, thick, color] = *fog;
        const std::size_t count = rest.shape(0);
        if (count != 1 && count != n) throw nb::value_error("fog: one number, or one a pixel");
        expect_shape(thick, "fog", {count});
        expect_shape(color, "the color of the fog", {3});
        mist = {rest.data(), thick.data(), count == 1, color.data()};
    }
    without_gil([&] {
        paint(n, places.data(), lanes.data(), fog ? &mist : nullptr, light.data(), total.data());
    });
}

void halve_texels(In<std::uint64_t, 2> fine, Out<std::uint64_t, 2> coarse) {
    const std::size_t h = coarse.shape(0), w = coarse.shape(1);
    if (fine.shape(0) < 2 * h || fine.shape(1) < 2 * w)
        throw nb::value_error("coarse: at most half of fine");
    without_gil([&] {
        halve(fine.data(), side(fine.shape(1)), side(h), side(w), coarse.data());
    });
}

Mesh mesh_of(const In<double, 3>& points, std::tuple<double, double, double> camera,
             double near) {
    if (points.shape(0) < 2 || points.shape(1) < 2 || points.shape(2) != 3)
        throw nb::value_error("points: at least 2 x 2 x 3");
    if (!(near > 0)) throw nb::value_error("near: above 0");
    const auto [focal, center_x, center_y] = camera;
    return {points.data(), side(points.shape(0)), side(points.shape(1)), focal,
            center_x,      center_y,              near};
}

// Places are sorted by the pixel that they are in, with memory for every pixel of the box around
// them, so they must not be far apart.
struct Places {
    std::vector<float> x, y;
};

Places places_of(const In<float, 1>& x, const In<float, 1>& y) {
    expect_shape(y, "y", {x.shape(0)});
    if (x.shape(0) > (1u << 25)) throw nb::value_error("x: at most 2^25 places");
    Places places{snapshot(x), snapshot(y)};
    double area = places.x.empty() ? 0 : 1;
    for (const auto* axis : {&places.x, &places.y}) {
        float least = 16384, most = -16384;
        for (const float place : *axis) {
            if (!(std::abs(place) <= 16384))
                throw nb::value_error("x and y: within +-16384 pixels");
            least = std::min(least, place);
            most = std::max(most, place);
        }
        area *= most - least;
    }
    if (area > (1u << 26)) throw nb::value_error("x and y: in a box of at most 2^26 pixels");
    return places;
}

void trace_mesh(In<double, 3> points, std::tuple<double, double, double> camera, double near,
                In<float, 1> x, In<float, 1> y, Out<float, 2> met) {
    const Mesh mesh = mesh_of(points, camera, near);
    const Places places = places_of(x, y);
    const std::size_t n = x.shape(0);
    expect_shape(met, "met", {3, n});
    without_gil([&] {
        trace(mesh, n, places.x.data(), places.y.data(), met.data(), met.data() + n, met.data() + 2 * n);
    });
}

void look_at_mesh(In<double, 3> points, std::tuple<double, double, double> camera, double near,
                  In<std::uint64_t, 2> words, int rays, In<float, 1> x, In<float, 1> y,
                  Out<std::uint16_t, 2> lanes) {
    const Mesh mesh = mesh_of(points, camera, near);
    const Texels texels = texels_of(words);
    if (rays < 1 || rays > 9 || rays % 2 == 0) throw nb::value_error("rays: odd, from 1 to 9");
    const Places places = places_of(x, y);
    expect_shape(lanes, "lanes", {x.shape(0), 4});
    without_gil([&] {
        mesh_lanes(mesh, texels, rays, places.x.size(), places.x.data(), places.y.data(),
                   lanes.data());
    });
}

}  // namespace

void define_scenes(nb::module_& m) {
    m.def("look_up", look_up_texels, nb::arg("words"), nb::arg("x"), nb::arg("y"), out("lanes"));
    m.def("plane_texels", texels_of_plane, nb::arg("matrix"), nb::arg("places"),
          nb::arg("nowhere"), nb::arg("solid"), nb::arg("x"), nb::arg("y"), out("at_x"),
          out("at_y"));
    m.def("pixels_above", find_pixels, nb::arg("image"), nb::arg("window"), nb::arg("least"),
          out("index"), out("x"), out("y"));
    m.def("paint", paint_pixels, nb::arg("index"), nb::arg("lanes"), nb::arg("fog").none(),
          out("light"), out("total"));
    m.def("trace", trace_mesh, nb::arg("points"), nb::arg("camera"), nb::arg("near"),
          nb::arg("x"), nb::arg("y"), out("met"));
    m.def("mesh_lanes", look_at_mesh, nb::arg("points"), nb::arg("camera"), nb::arg("near"),
          nb::arg("words"), nb::arg("rays"), nb::arg("x"), nb::arg("y"), out("lanes"));
    m.def("halve", halve_texels, nb::arg("fine"), out("coarse"));
}

}  // namespace hamflow::bind
