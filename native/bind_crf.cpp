// The joint model for Python: chains, moves, fusion.
#include <type_traits>

#include "bind.hpp"
#include "labeling.hpp"
#include "simd/levels.hpp"

namespace hamflow::bind {

namespace {

void expect_reach(int reach) {
    if (reach < 1 || reach > max_labels || (reach & (reach - 1)))
        throw nb::value_error("reach: a power of two up to 4096");
}

// One pass over a plane; the sum of the chains' minima comes back.
template <class T, class Share>
auto chain_pass(Out<T, 3> lam, Out<T, 3> hold, Maybe<Out<T, 3>> s, In<T, 3> edges,
                Maybe<In<Share, 1>> shares, bool vertical, bool reverse, int reach, bool fresh) {
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
        fresh,
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

template <class T>
Edges<T> edges_of(const In<T, 3>& right, const In<T, 3>& down, int reach, int h, int w) {
    const auto rows = static_cast<std::size_t>(h), columns = static_cast<std::size_t>(w);
    expect_shapes({rows, columns, 3}, "right", right, "down", down);
    expect_reach(reach);
    return {reinterpret_cast<const EdgeCost<T>*>(right.data()),
            reinterpret_cast<const EdgeCost<T>*>(down.data()), reach};
}

// Costs of the labels u, and how many units of the solver each of them is.
template <class Pair>
const std::uint8_t* unary_of(const Maybe<In<std::uint8_t, 3>>& unary, const Pair& p,
                             const Window& win) {
    if (!unary) return nullptr;
    expect_shape(*unary, "unary", {static_cast<std::size_t>(p.h), static_cast<std::size_t>(p.w),
                                   static_cast<std::size_t>(win.du)});
    return unary->data();
}

template <class T>
void relabel(InBits bits0, InBits bits1, WindowTuple window,
             std::tuple<T, T, T> cost, In<T, 3> right, In<T, 3> down, int reach,
             const std::string& blocks, In<std::int16_t, 2> v, Out<std::int16_t, 2> u,
             Maybe<In<std::uint8_t, 3>> unary, T unit) {
    constexpr bool fixed = std::is_same_v<T, std::int16_t>;
    const BitsPair p = bits_pair(bits0, bits1);
    const Window win = window_of(window);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_label_field("u", u, p.h, p.w, win.du);
    const std::conditional_t<fixed, FixedCost, FloatCost> c{std::get<0>(cost), std::get<1>(cost),
                                                            std::get<2>(cost)};
    const Relabeling<T, BitsPair, std::remove_const_t<decltype(c)>> problem{
        p, win, c, edges_of<T>(right, down, reach, p.h, p.w), blocks_of(blocks), v.data(),
        u.data(), unary_of(unary, p, win), unit};
    without_gil([&] {
        if constexpr (fixed)
            active_kernels().relabel_bits16(problem);
        else
            active_kernels().relabel_bits32(problem);
    });
}

void relabel_phi(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window,
                 std::tuple<float, float> cost, In<float, 3> right, In<float, 3> down, int reach,
                 const std::string& blocks, In<std::int16_t, 2> v, Out<std::int16_t, 2> u,
                 Maybe<In<std::uint8_t, 3>> unary, float unit) {
    const PhiPair p = phi_pair(phi0, phi1);
    const Window win = window_of(window);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_label_field("u", u, p.h, p.w, win.du);
    const RelabelingPhi problem{p,
                                 win,
                                 {std::get<0>(cost), std::get<1>(cost)},
                                 edges_of<float>(right, down, reach, p.h, p.w),
                                 blocks_of(blocks),
                                 v.data(),
                                 u.data(),
                                 unary_of(unary, p, win),
                                 unit};
    without_gil([&] { active_kernels().relabel_phi(problem); });
}

void expect_rho(const In<double, 1>& rho) {
    if (rho.shape(0) < 1 || rho.shape(0) > max_labels)
        throw nb::value_error("rho: 1 to 4096 values");
}

void fuse_labels(In<float, 2> right, In<float, 2> down, In<double, 1> rho,
                 const std::string& blocks,
                 Out<std::int16_t, 2> u, Out<std::int16_t, 2> v, Out<double, 2> data,
                 In<std::int16_t, 2> other_u, In<std::int16_t, 2> other_v,
                 In<double, 2> other_data) {
    const std::size_t h = right.shape(0), w = right.shape(1);
    for (const auto* a : {&u, &v}) expect_shape(*a, "labels", {h, w});
    for (const auto* a : {&other_u, &other_v}) expect_shape(*a, "other labels", {h, w});
    expect_shapes({h, w}, "down", down, "data", data, "other_data", other_data);
    expect_rho(rho);
    const Fusion fusion{side(h),        side(w),        right.data(), down.data(),
                        rho.data(),     static_cast<int>(rho.shape(0)),
                        u.data(),       v.data(),       data.data(),  other_u.data(),
                        other_v.data(), other_data.data()};
    const Blocks lines = blocks_of(blocks);
    if (lines == Blocks::pixels) throw nb::value_error("blocks: 'rows' or 'columns'");
    without_gil([&] { fuse(fusion, lines); });
}

double label_energy(In<float, 2> right, In<float, 2> down, In<double, 1> rho,
                    In<std::int16_t, 2> u, In<std::int16_t, 2> v, In<double, 2> data) {
    const std::size_t h = right.shape(0), w = right.shape(1);
    expect_shape(down, "down", {h, w});
    for (const auto* a : {&u, &v}) expect_shape(*a, "labels", {h, w});
    expect_shape(data, "data", {h, w});
    expect_rho(rho);
    double energy = 0;
    without_gil([&] {
        energy = energy_of(side(h), side(w), right.data(), down.data(), rho.data(),
                           static_cast<int>(rho.shape(0)), u.data(), v.data(), data.data());
    });
    return energy;
}

void add_label_costs(In<std::uint8_t, 3> costs, In<std::int16_t, 2> labels,
                     Out<double, 2> total) {
    const int h = side(costs.shape(0)), w = side(costs.shape(1));
    const std::size_t d = costs.shape(2);
    if (d < 1 || d > max_labels) throw nb::value_error("costs: 1 to 4096 labels");
    expect_label_field("labels", labels, h, w, static_cast<int>(d));
    expect_shape(total, "total", {costs.shape(0), costs.shape(1)});
    without_gil([&] {
        hamflow::add_label_costs(h, w, static_cast<int>(d), costs.data(), labels.data(),
                                 total.data());
    });
}

template <class T>
void add_scaled(Out<T, 3> volume, In<std::uint8_t, 3> values, T factor) {
    expect_shape(values, "values", {volume.shape(0), volume.shape(1), volume.shape(2)});
    without_gil([&] {
        hamflow::add_scaled(volume.size(), volume.data(), values.data(), factor);
    });
}

void expected_costs(In<float, 2> expected, In<float, 2> most, float slope, float free, int first,
                    Out<std::uint8_t, 3> out) {
    const std::size_t h = expected.shape(0), w = expected.shape(1), d = out.shape(2);
    expect_shapes({h, w}, "most", most, "out", out);
    if (d < 1 || d > max_labels) throw nb::value_error("out: 1 to 4096 labels");
    without_gil([&] {
        hamflow::expected_costs(side(h), side(w), static_cast<int>(d), expected.data(),
                                most.data(), slope, free, first, out.data());
    });
}

template <class T>
void label_margins(In<T, 3> slack, In<std::int16_t, 2> labels, Out<float, 2> out) {
    const int h = side(slack.shape(0)), w = side(slack.shape(1));
    const std::size_t d = slack.shape(2);
    if (d < 1 || d > max_labels) throw nb::value_error("slack: 1 to 4096 labels");
    expect_label_field("labels", labels, h, w, static_cast<int>(d));
    expect_shape(out, "out", {slack.shape(0), slack.shape(1)});
    without_gil([&] {
        hamflow::label_margins(h, w, static_cast<int>(d), slack.data(), labels.data(), out.data());
    });
}

}  // namespace

void define_crf(nb::module_& m) {
    const auto chains = [&](auto function) {
        m.def("chain_pass", function, out("lam"), out("hold"), out("s").none(),
              nb::arg("edges").noconvert(), nb::arg("shares").noconvert().none(),
              nb::arg("vertical"), nb::arg("reverse"), nb::arg("reach"),
              nb::arg("fresh") = false);
    };
    chains(chain_pass<std::int16_t, std::uint16_t>);
    chains(chain_pass<float, float>);
    const auto relabels = [&](auto function) {
        m.def("relabel", function, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
              nb::arg("cost"), nb::arg("right").noconvert(), nb::arg("down").noconvert(),
              nb::arg("reach"), nb::arg("blocks"), nb::arg("v"), out("u"),
              nb::arg("unary").noconvert().none() = nb::none(), nb::arg("unit") = 0);
    };
    relabels(relabel<std::int16_t>);
    relabels(relabel<float>);
    m.def("relabel_phi", relabel_phi, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("cost"), nb::arg("right"), nb::arg("down"), nb::arg("reach"),
          nb::arg("blocks"), nb::arg("v"), out("u"),
          nb::arg("unary").noconvert().none() = nb::none(), nb::arg("unit") = 0.0f);
    const auto margins = [&](auto function) {
        m.def("label_margins", function, nb::arg("slack").noconvert(), nb::arg("labels"),
              out("out"));
    };
    margins(label_margins<std::int16_t>);
    margins(label_margins<float>);
    m.def("label_energy", label_energy, nb::arg("right"), nb::arg("down"), nb::arg("rho"),
          nb::arg("u"), nb::arg("v"), nb::arg("data"));
    m.def("add_label_costs", add_label_costs, nb::arg("costs").noconvert(), nb::arg("labels"),
          out("total"));
    const auto adds = [&](auto function) {
        m.def("add_scaled", function, out("volume"), nb::arg("values").noconvert(),
              nb::arg("factor"));
    };
    adds(add_scaled<std::int16_t>);
    adds(add_scaled<float>);
    m.def("expected_costs", expected_costs, nb::arg("expected"), nb::arg("most"),
          nb::arg("slope"), nb::arg("free"), nb::arg("first"), out("out"));
    m.def("fuse", fuse_labels, nb::arg("right"), nb::arg("down"), nb::arg("rho"),
          nb::arg("blocks"), out("u"), out("v"), out("data"), nb::arg("other_u"),
          nb::arg("other_v"), nb::arg("other_data"));
}

}  // namespace hamflow::bind
