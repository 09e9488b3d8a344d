// The kernels for Python: shapes, types, errors, the GIL and Ctrl-C. The Python side
// (hamflow.matching) checks its arguments with friendly words and allocates the outputs; here
// everything is checked once more so that no call can touch memory that is not its own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "components.hpp"
#include "interpolation.hpp"
#include "kernels.hpp"
#include "labelling.hpp"
#include "simd/levels.hpp"
#include "threads.hpp"
#include "variational.hpp"

namespace nb = nanobind;
using namespace hamflow;

namespace {

template <class T, int rank>
using In = nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
template <class T, int rank>
using Out = nb::ndarray<T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
using WindowTuple = std::tuple<int, int, int, int>;
template <class T>
using Maybe = std::optional<T>;

// Labels are int16, and an argmin stores a vector's number in a byte: see min_projection.inl.
constexpr int max_labels = 4096;

Window window_of(const WindowTuple& t) {
    const Window win{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t)};
    const auto within = [](int first, int count) {
        return count >= 1 && count <= max_labels && first >= -(1 << 24) && first <= (1 << 24);
    };
    if (!within(win.u0, win.du) || !within(win.v0, win.dv))
        throw nb::value_error("window: each side needs 1 to 4096 labels within +-2^24 pixels");
    return win;
}

int side(std::size_t n) {
    if (n < 1 || n > (1u << 24)) throw nb::value_error("an image side must be 1 to 2^24 pixels");
    return static_cast<int>(n);
}

template <class Array>
void expect_shape(const Array& a, const char* name, std::initializer_list<std::size_t> shape) {
    std::size_t axis = 0;
    for (std::size_t n : shape)
        if (a.shape(axis++) != n)
            throw nb::value_error((std::string(name) + " has the wrong shape").c_str());
}

BitsPair bits_pair(const In<std::uint64_t, 2>& b0, const In<std::uint64_t, 2>& b1) {
    expect_shape(b1, "bits1", {b0.shape(0), b0.shape(1)});
    return BitsPair(b0.data(), b1.data(), side(b0.shape(0)), side(b0.shape(1)));
}

PhiPair phi_pair(const In<float, 3>& p0, const In<float, 3>& p1) {
    expect_shape(p1, "phi1", {p0.shape(0), p0.shape(1), p0.shape(2)});
    return {p0.data(), p1.data(), side(p0.shape(0)), side(p0.shape(1)), side(p0.shape(2))};
}

// Volumes h x w x du and h x w x dv.
template <class Pair, class U, class V>
void expect_volumes(const Pair& p, const Window& win, const U& u, const V& v) {
    const auto h = static_cast<std::size_t>(p.h), w = static_cast<std::size_t>(p.w);
    expect_shape(u, "the volume over u", {h, w, static_cast<std::size_t>(win.du)});
    expect_shape(v, "the volume over v", {h, w, static_cast<std::size_t>(win.dv)});
}

bool ctrl_c() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// Runs the work without the GIL; a signal handler's exception comes out as itself.
template <class Work>
void without_gil(const Work& work) {
    bool interrupted = false;
    {
        nb::gil_scoped_release release;
        try {
            work();
        } catch (const Interrupted&) {
            interrupted = true;
        }
    }
    if (interrupted) throw nb::python_error();
}

Direction direction_of(const std::string& to) {
    if (to == "u") return Direction::to_u;
    if (to == "v") return Direction::to_v;
    throw nb::value_error("the receiver of a message is 'u' or 'v'");
}

template <class T>
T* data_or_null(Maybe<Out<T, 3>>& a) {
    return a ? a->data() : nullptr;
}

void min_projection(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
                    std::uint8_t outside, Out<std::uint8_t, 3> cu, Out<std::uint8_t, 3> cv,
                    Maybe<Out<std::int16_t, 3>> v_hat, Maybe<Out<std::int16_t, 3>> u_hat) {
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    expect_volumes(p, win, cu, cv);
    if (v_hat.has_value() != u_hat.has_value())
        throw nb::value_error("v_hat and u_hat come together");
    if (v_hat) expect_volumes(p, win, *v_hat, *u_hat);
    if (outside > 64) throw nb::value_error("outside: a Hamming distance, 0 to 64");
    without_gil([&] {
        active_kernels().min_projection(p, win, outside, cu.data(), cv.data(),
                                        data_or_null(v_hat), data_or_null(u_hat));
    });
}

template <class T>
void expect_message(int h, int w, const Window& win, Direction to, const In<T, 3>& lam,
                    const Out<T, 3>& out) {
    const auto rows = static_cast<std::size_t>(h), columns = static_cast<std::size_t>(w);
    const auto du = static_cast<std::size_t>(win.du), dv = static_cast<std::size_t>(win.dv);
    const bool to_u = to == Direction::to_u;
    expect_shape(lam, "lam", {rows, columns, to_u ? dv : du});
    expect_shape(out, "out", {rows, columns, to_u ? du : dv});
}

void message16(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
               const std::string& to, std::tuple<int, int, int> cost, In<std::int16_t, 3> lam,
               Out<std::int16_t, 3> out) {
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    const Direction direction = direction_of(to);
    const FixedCost c{std::get<0>(cost), std::get<1>(cost), std::get<2>(cost)};
    const auto fits = [](int x) { return x >= -32768 && x <= 32767; };
    // 128: the negated step is a signed byte of the multiplication.
    if (c.step < 1 || c.step > 128 || !fits(c.base) || !fits(c.base + 64 * c.step) ||
        !fits(c.outside))
        throw nb::value_error("cost: step must be 1 to 128, and all costs must fit int16");
    expect_message<std::int16_t>(p.h, p.w, win, direction, lam, out);
    without_gil([&] { active_kernels().message16(p, win, direction, c, lam.data(), out.data()); });
}

void message32(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
               const std::string& to, std::tuple<float, float, float> cost, In<float, 3> lam,
               Out<float, 3> out) {
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    const Direction direction = direction_of(to);
    const FloatCost c{std::get<0>(cost), std::get<1>(cost), std::get<2>(cost)};
    if (!(c.step > 0) || !std::isfinite(c.step) || !std::isfinite(c.base) ||
        !std::isfinite(c.outside))
        throw nb::value_error("cost: all values must be finite, and step positive");
    expect_message<float>(p.h, p.w, win, direction, lam, out);
    without_gil([&] { active_kernels().message32(p, win, direction, c, lam.data(), out.data()); });
}

void float_min_projection(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window, float outside,
                          Out<float, 3> cu, Out<float, 3> cv,
                          Maybe<Out<std::int16_t, 3>> v_hat, Maybe<Out<std::int16_t, 3>> u_hat) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_volumes(p, win, cu, cv);
    if (v_hat.has_value() != u_hat.has_value())
        throw nb::value_error("v_hat and u_hat come together");
    if (v_hat) expect_volumes(p, win, *v_hat, *u_hat);
    without_gil([&] {
        active_kernels().float_min_projection(p, win, outside, cu.data(), cv.data(),
                                              data_or_null(v_hat), data_or_null(u_hat));
    });
}

void float_message(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window,
                   const std::string& to, float outside, In<float, 3> lam, Out<float, 3> out) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    const Direction direction = direction_of(to);
    expect_message<float>(p.h, p.w, win, direction, lam, out);
    without_gil([&] {
        active_kernels().float_message(p, win, direction, outside, lam.data(), out.data());
    });
}

// True if is_good(begin, end) holds for every chunk of [0, n).
template <class IsGood>
bool all_chunks(std::size_t n, const IsGood& is_good) {
    constexpr std::size_t chunk = 1 << 16;
    std::atomic<bool> good{true};
    without_gil([&] {
        parallel_for(static_cast<int>((n + chunk - 1) / chunk), [&](int index) {
            if (!is_good(index * chunk, std::min(n, (index + 1) * chunk))) good = false;
        });
    });
    return good;
}

// A label outside of the window means nothing; the kernels check targets, not labels.
void expect_labels(const char* name, const std::int16_t* labels, std::size_t n, int count) {
    const bool good = all_chunks(n, [&](std::size_t begin, std::size_t end) {
        bool bad = false;
        for (std::size_t i = begin; i < end; ++i) bad |= labels[i] < 0 || labels[i] >= count;
        return !bad;
    });
    if (!good)
        throw nb::value_error((std::string(name) + " has labels outside of the window").c_str());
}

void gather(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window, float outside,
            In<std::int16_t, 3> v_hat, In<std::int16_t, 3> u_hat, Out<float, 3> cu,
            Out<float, 3> cv) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_volumes(p, win, v_hat, u_hat);
    expect_volumes(p, win, cu, cv);
    expect_labels("v_hat", v_hat.data(), v_hat.size(), win.dv);
    expect_labels("u_hat", u_hat.data(), u_hat.size(), win.du);
    without_gil([&] {
        active_kernels().gather(p, win, outside, v_hat.data(), u_hat.data(), cu.data(), cv.data());
    });
}

void scatter(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window, In<std::int16_t, 3> v_hat,
             In<std::int16_t, 3> u_hat, In<float, 3> grad_cu, In<float, 3> grad_cv,
             Out<float, 3> grad_phi0, Out<float, 3> grad_phi1) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_volumes(p, win, v_hat, u_hat);
    expect_volumes(p, win, grad_cu, grad_cv);
    expect_labels("v_hat", v_hat.data(), v_hat.size(), win.dv);
    expect_labels("u_hat", u_hat.data(), u_hat.size(), win.du);
    for (const auto* g : {&grad_phi0, &grad_phi1})
        expect_shape(*g, "the gradient", {phi0.shape(0), phi0.shape(1), phi0.shape(2)});
    without_gil([&] {
        active_kernels().scatter(p, win, v_hat.data(), u_hat.data(), grad_cu.data(),
                                 grad_cv.data(), grad_phi0.data(), grad_phi1.data());
    });
}

void expect_reach(int reach) {
    if (reach < 1 || reach > max_labels || (reach & (reach - 1)))
        throw nb::value_error("reach: a power of two up to 4096");
}

// One pass over a plane; the sum of the chains' minima comes back.
template <class T, class Share>
auto chain_pass(Out<T, 3> lam, Out<T, 3> hold, Maybe<Out<T, 3>> s, In<T, 3> edges,
                Maybe<In<Share, 1>> shares, bool vertical, bool reverse, int reach) {
    const std::size_t h = lam.shape(0), w = lam.shape(1), d = lam.shape(2);
    const ChainPass<T, Share> pass{
        side(h),
        side(w),
        static_cast<int>(d),
        vertical,
        reverse,
        reach,
        reinterpret_cast<const EdgeCost<T>*>(edges.data()),
        shares ? shares->data() : nullptr,
        lam.data(),
        hold.data(),
        s ? s->data() : nullptr,
    };
    if (d < 1 || d > max_labels) throw nb::value_error("lam: 1 to 4096 labels");
    expect_shape(hold, "hold", {h, w, d});
    if (s) expect_shape(*s, "s", {h, w, d});
    expect_shape(edges, "edges", {h, w, 3});
    if (shares) expect_shape(*shares, "shares", {(vertical ? h : w) - 1});
    expect_reach(reach);
    std::conditional_t<std::is_same_v<T, float>, double, std::int64_t> bound = 0;
    without_gil([&] {
        if constexpr (std::is_same_v<T, float>)
            bound = active_kernels().chain_pass32(pass);
        else
            bound = active_kernels().chain_pass16(pass);
    });
    return bound;
}

Blocks blocks_of(const std::string& name) {
    if (name == "rows") return Blocks::rows;
    if (name == "columns") return Blocks::columns;
    if (name == "pixels") return Blocks::pixels;
    throw nb::value_error("blocks: 'rows', 'columns' or 'pixels'");
}

template <class Array>
void expect_label_field(const char* name, const Array& labels, int h, int w, int count) {
    expect_shape(labels, name, {static_cast<std::size_t>(h), static_cast<std::size_t>(w)});
    expect_labels(name, labels.data(), labels.size(), count);
}

template <class T>
Edges<T> edges_of(const In<T, 3>& right, const In<T, 3>& down, int reach, int h, int w) {
    const auto rows = static_cast<std::size_t>(h), columns = static_cast<std::size_t>(w);
    expect_shape(right, "right", {rows, columns, 3});
    expect_shape(down, "down", {rows, columns, 3});
    expect_reach(reach);
    return {reinterpret_cast<const EdgeCost<T>*>(right.data()),
            reinterpret_cast<const EdgeCost<T>*>(down.data()), reach};
}

template <class T>
void relabel(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
             std::tuple<T, T, T> cost, In<T, 3> right, In<T, 3> down, int reach,
             const std::string& blocks, In<std::int16_t, 2> v, Out<std::int16_t, 2> u) {
    constexpr bool fixed = std::is_same_v<T, std::int16_t>;
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_label_field("u", u, p.h, p.w, win.du);
    const std::conditional_t<fixed, FixedCost, FloatCost> c{std::get<0>(cost), std::get<1>(cost),
                                                            std::get<2>(cost)};
    const Relabelling<T, BitsPair, std::remove_const_t<decltype(c)>> problem{
        p, win, c, edges_of<T>(right, down, reach, p.h, p.w), blocks_of(blocks), v.data(),
        u.data()};
    without_gil([&] {
        if constexpr (fixed)
            active_kernels().relabel_bits16(problem);
        else
            active_kernels().relabel_bits32(problem);
    });
}

void relabel_phi(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window,
                 std::tuple<float, float> cost, In<float, 3> right, In<float, 3> down, int reach,
                 const std::string& blocks, In<std::int16_t, 2> v, Out<std::int16_t, 2> u) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_label_field("u", u, p.h, p.w, win.du);
    const RelabellingPhi problem{p,
                                 win,
                                 {std::get<0>(cost), std::get<1>(cost)},
                                 edges_of<float>(right, down, reach, p.h, p.w),
                                 blocks_of(blocks),
                                 v.data(),
                                 u.data()};
    without_gil([&] { active_kernels().relabel_phi(problem); });
}

void fuse_labels(In<float, 2> right, In<float, 2> down, In<double, 1> rho,
                 const std::string& blocks,
                 Out<std::int16_t, 2> u, Out<std::int16_t, 2> v, Out<double, 2> data,
                 In<std::int16_t, 2> other_u, In<std::int16_t, 2> other_v,
                 In<double, 2> other_data) {
    const std::size_t h = right.shape(0), w = right.shape(1);
    for (const auto* a : {&u, &v}) expect_shape(*a, "labels", {h, w});
    for (const auto* a : {&other_u, &other_v}) expect_shape(*a, "other labels", {h, w});
    expect_shape(down, "down", {h, w});
    expect_shape(data, "data", {h, w});
    expect_shape(other_data, "other_data", {h, w});
    if (rho.shape(0) < 1 || rho.shape(0) > max_labels)
        throw nb::value_error("rho: 1 to 4096 values");
    const Fusion fusion{side(h),        side(w),        right.data(), down.data(),
                        rho.data(),     static_cast<int>(rho.shape(0)),
                        u.data(),       v.data(),       data.data(),  other_u.data(),
                        other_v.data(), other_data.data()};
    const Blocks lines = blocks_of(blocks);
    if (lines == Blocks::pixels) throw nb::value_error("blocks: 'rows' or 'columns'");
    without_gil([&] { fuse(fusion, lines); });
}

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
    const auto [neighbours, reach, tolerance, rounds] = how;
    if (neighbours < 1 || neighbours > 10000 || !(reach > 0) || !(tolerance > 0) || rounds < 0)
        throw nb::value_error("how: neighbours in 1..10000, reach > 0, tolerance > 0, rounds >= 0");
    const Interpolation problem{
        side(h),      side(w),      right.data(), down.data(), static_cast<int>(seeds),
        pixel.data(), place.data(), match.data(), trust.data(), neighbours,
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

void label_distances(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
                  In<std::int16_t, 2> u, In<std::int16_t, 2> v, Out<std::int16_t, 2> out) {
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    expect_label_field("u", u, p.h, p.w, win.du);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_shape(out, "out", {bits0.shape(0), bits0.shape(1)});
    without_gil([&] { distances_at(p, win, u.data(), v.data(), out.data()); });
}

void label_costs(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window, In<std::int16_t, 2> u,
              In<std::int16_t, 2> v, Out<double, 2> out) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_label_field("u", u, p.h, p.w, win.du);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_shape(out, "out", {phi0.shape(0), phi0.shape(1)});
    without_gil([&] { costs_at(p, win, u.data(), v.data(), out.data()); });
}

template <class T>
void best_labels(In<T, 3> costs, int first, Out<std::int16_t, 2> labels) {
    expect_shape(labels, "labels", {costs.shape(0), costs.shape(1)});
    const int count = side(costs.shape(2));
    if (count > max_labels) throw nb::value_error("costs: at most 4096 labels");
    if (first < -(1 << 24) || first > (1 << 24))
        throw nb::value_error("first: a displacement within +-2^24 pixels");
    const std::size_t n = costs.shape(0) * costs.shape(1);
    without_gil([&] {
        if constexpr (std::is_same_v<T, float>)
            active_kernels().best_labels_f32(costs.data(), n, count, first, labels.data());
        else if constexpr (std::is_same_v<T, std::int16_t>)
            active_kernels().best_labels_i16(costs.data(), n, count, first, labels.data());
        else
            active_kernels().best_labels_u8(costs.data(), n, count, first, labels.data());
    });
}

template <class Pair>
void expect_rescan(const Pair& p, const Window& win, const In<std::int16_t, 2>& v_labels,
                   const Out<float, 3>& flow) {
    const auto h = static_cast<std::size_t>(p.h), w = static_cast<std::size_t>(p.w);
    expect_shape(v_labels, "v_labels", {h, w});
    expect_shape(flow, "flow", {h, w, 2});
    expect_labels("v_labels", v_labels.data(), v_labels.size(), win.dv);
}

void rescan_bits(In<std::uint64_t, 2> bits0, In<std::uint64_t, 2> bits1, WindowTuple window,
                 std::uint8_t outside, In<std::int16_t, 2> v_labels, Out<float, 3> flow) {
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    expect_rescan(p, win, v_labels, flow);
    without_gil([&] {
        active_kernels().rescan_bits(p, win, outside, v_labels.data(), flow.data());
    });
}

void rescan_phi(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window, float outside,
                In<std::int16_t, 2> v_labels, Out<float, 3> flow) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_rescan(p, win, v_labels, flow);
    without_gil([&] {
        active_kernels().rescan_phi(p, win, outside, v_labels.data(), flow.data());
    });
}

bool all_within(nb::ndarray<const float, nb::c_contig, nb::device::cpu> a, float limit) {
    const float* data = a.data();
    return all_chunks(a.size(), [&](std::size_t begin, std::size_t end) {
        bool bad = false;
        for (std::size_t i = begin; i < end; ++i) bad |= !(std::fabs(data[i]) <= limit);
        return !bad;
    });
}

double peak(const std::string& mix, long long rounds) {
    const Kernels& kernels = active_kernels();
    if (!kernels.peak) throw nb::value_error("this level has no micro-kernel");
    if (mix != "min_projection" && mix != "fused_multiply_add")
        throw nb::value_error("mix is 'min_projection' or 'fused_multiply_add'");
    const Mix which = mix == "min_projection" ? Mix::min_projection : Mix::fused_multiply_add;
    std::vector<double> work(static_cast<std::size_t>(get_num_threads()));
    without_gil([&] {
        parallel_for(static_cast<int>(work.size()), [&](int thread) {
            work[static_cast<std::size_t>(thread)] = kernels.peak(which, rounds) * rounds;
        });
    });
    double sum = 0;
    for (double w : work) sum += w;
    return sum;
}

void copy_bytes(In<std::uint8_t, 1> from, Out<std::uint8_t, 1> to, int rounds) {
    expect_shape(to, "to", {from.shape(0)});
    const int threads = get_num_threads();
    const std::size_t share = from.shape(0) / static_cast<std::size_t>(threads);
    without_gil([&] {
        parallel_for(threads, [&](int thread) {
            const std::size_t at = share * static_cast<std::size_t>(thread);
            for (int r = 0; r < rounds; ++r) std::memcpy(to.data() + at, from.data() + at, share);
        });
    });
}

std::vector<std::string> levels() {
    std::vector<std::string> names;
    for (const Kernels* k : available_kernels()) names.emplace_back(k->name);
    return names;
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled kernels; use them through hamflow.matching.";
    set_interrupt_check(ctrl_c);
    // A converted copy of an output would take the results with it.
    const auto out = [](const char* name) { return nb::arg(name).noconvert(); };

    m.def("levels", levels, "Instruction-set levels that this machine can run, worst first.");
    m.def("level", [] { return std::string(active_kernels().name); }, "The level in use.");
    m.def("force_level",
          [](Maybe<std::string> name) { return force_kernels(name ? name->c_str() : nullptr); },
          nb::arg("name").none(), "Use this level (None: the best); False if it cannot be.");
    m.def("set_num_threads", set_num_threads, nb::arg("n"));
    m.def("get_num_threads", get_num_threads);

    m.def("min_projection", min_projection, nb::arg("bits0"), nb::arg("bits1"),
          nb::arg("window"), nb::arg("outside"), out("cu"), out("cv"),
          out("v_hat").none(), out("u_hat").none());
    m.def("message16", message16, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
          nb::arg("to"), nb::arg("cost"), nb::arg("lam"), out("out"));
    m.def("message32", message32, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
          nb::arg("to"), nb::arg("cost"), nb::arg("lam"), out("out"));
    m.def("float_min_projection", float_min_projection, nb::arg("phi0"), nb::arg("phi1"),
          nb::arg("window"), nb::arg("outside"), out("cu"), out("cv"),
          out("v_hat").none(), out("u_hat").none());
    m.def("float_message", float_message, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("to"), nb::arg("outside"), nb::arg("lam"), out("out"));
    m.def("gather", gather, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("outside"), nb::arg("v_hat"), nb::arg("u_hat"), out("cu"), out("cv"));
    m.def("scatter", scatter, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("v_hat"), nb::arg("u_hat"), nb::arg("grad_cu"), nb::arg("grad_cv"),
          out("grad_phi0"), out("grad_phi1"));
    const auto chains = [&](auto function) {
        m.def("chain_pass", function, out("lam"), out("hold"), out("s").none(),
              nb::arg("edges").noconvert(), nb::arg("shares").noconvert().none(),
              nb::arg("vertical"), nb::arg("reverse"), nb::arg("reach"));
    };
    chains(chain_pass<std::int16_t, std::uint16_t>);
    chains(chain_pass<float, float>);
    const auto relabels = [&](auto function) {
        m.def("relabel", function, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
              nb::arg("cost"), nb::arg("right").noconvert(), nb::arg("down").noconvert(),
              nb::arg("reach"), nb::arg("blocks"), nb::arg("v"), out("u"));
    };
    relabels(relabel<std::int16_t>);
    relabels(relabel<float>);
    m.def("relabel_phi", relabel_phi, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("cost"), nb::arg("right"), nb::arg("down"), nb::arg("reach"),
          nb::arg("blocks"), nb::arg("v"), out("u"));
    m.def("fuse", fuse_labels, nb::arg("right"), nb::arg("down"), nb::arg("rho"),
          nb::arg("blocks"), out("u"), out("v"), out("data"), nb::arg("other_u"),
          nb::arg("other_v"), nb::arg("other_data"));
    m.def("drop_small", drop_small_components, out("mask"), nb::arg("least"));
    m.def("interpolate", interpolate_matches, nb::arg("right"), nb::arg("down"), nb::arg("pixel"),
          nb::arg("place"), nb::arg("match"), nb::arg("trust"), nb::arg("how"), out("flow"),
          out("distance"));
    m.def("variational", variational, nb::arg("f0"), nb::arg("f1"), nb::arg("first_group"),
          nb::arg("strength"), nb::arg("weight"), nb::arg("right"), nb::arg("down"),
          nb::arg("terms"), nb::arg("schedule"), out("flow"));
    m.def("label_distances", label_distances, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
          nb::arg("u"), nb::arg("v"), out("out"));
    m.def("label_costs", label_costs, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("u"), nb::arg("v"), out("out"));
    m.def("best_labels", best_labels<std::uint8_t>, nb::arg("costs"), nb::arg("first"),
          out("labels"));
    m.def("best_labels", best_labels<std::int16_t>, nb::arg("costs").noconvert(),
          nb::arg("first"), out("labels"));
    m.def("best_labels", best_labels<float>, nb::arg("costs"), nb::arg("first"),
          out("labels"));
    m.def("rescan_bits", rescan_bits, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
          nb::arg("outside"), nb::arg("v_labels"), out("flow"));
    m.def("rescan_phi", rescan_phi, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("outside"), nb::arg("v_labels"), out("flow"));

    m.def("all_within", all_within, nb::arg("array"), nb::arg("limit"),
          "Whether no element is NaN or larger than the limit in absolute value.");
    m.def("peak", peak, nb::arg("mix"), nb::arg("rounds"),
          "Runs a register-resident micro-kernel on all threads; returns the work it stands for.");
    m.def("copy_bytes", copy_bytes, nb::arg("from_"), nb::arg("to"), nb::arg("rounds"),
          "Plain copy by all threads, each its own share again and again: for the benchmarks.");
}
