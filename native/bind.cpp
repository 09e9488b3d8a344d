// The kernels for Python: shapes, types, errors, the GIL and Ctrl-C. The Python side
// (hamflow.matching) checks its arguments with messages for users and allocates the outputs; here
// everything is checked once more, so that no call can touch memory outside of its arrays.
#include "bind.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "labeling.hpp"
#include "pages.hpp"
#include "simd/levels.hpp"

using namespace hamflow;
using namespace hamflow::bind;

namespace {

bool ctrl_c() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

void min_projection(InBits bits0, InBits bits1, WindowTuple window,
                    std::uint8_t outside, Out<std::uint8_t, 3> cu, Out<std::uint8_t, 3> cv,
                    Maybe<Out<std::int16_t, 3>> v_hat, Maybe<Out<std::int16_t, 3>> u_hat) {
    const BitsPair p = bits_pair(bits0, bits1, Heights::any);
    const Window win = window_of(window);
    expect_volumes(p, win, cu, cv);
    if (v_hat.has_value() != u_hat.has_value())
        throw nb::value_error("v_hat and u_hat come together");
    if (v_hat) expect_volumes(p, win, *v_hat, *u_hat);
    if (outside > 64 * p.words)
        throw nb::value_error("outside: a Hamming distance, 0 to 64 for each word");
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

void message16(InBits bits0, InBits bits1, WindowTuple window,
               const std::string& to, std::tuple<int, int, int> cost, In<std::int16_t, 3> lam,
               Out<std::int16_t, 3> out) {
    const BitsPair p = bits_pair(bits0, bits1, Heights::any);
    const Window win = window_of(window);
    const Direction direction = direction_of(to);
    const FixedCost c{std::get<0>(cost), std::get<1>(cost), std::get<2>(cost)};
    const auto fits = [](int x) { return x >= -32768 && x <= 32767; };
    // 128: the negated step is a signed byte of the multiplication.
    if (c.step < 1 || c.step > 128 || !fits(c.base) || !fits(c.base + 64 * p.words * c.step) ||
        !fits(c.outside))
        throw nb::value_error("cost: step must be 1 to 128, and all costs must fit int16");
    expect_message<std::int16_t>(p.h, p.w, win, direction, lam, out);
    without_gil([&] { active_kernels().message16(p, win, direction, c, lam.data(), out.data()); });
}

void message32(InBits bits0, InBits bits1, WindowTuple window,
               const std::string& to, std::tuple<float, float, float> cost, In<float, 3> lam,
               Out<float, 3> out) {
    const BitsPair p = bits_pair(bits0, bits1, Heights::any);
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
    const PhiPair p = phi_pair(phi0, phi1, Heights::any);
    const Window win = window_of(window);
    const Direction direction = direction_of(to);
    expect_message<float>(p.h, p.w, win, direction, lam, out);
    without_gil([&] {
        active_kernels().float_message(p, win, direction, outside, lam.data(), out.data());
    });
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

template <class Pair>
void label_costs_of(const Pair& p, const WindowTuple& window, const In<std::int16_t, 2>& u,
                    const In<std::int16_t, 2>& v, double outside, const Out<double, 2>& out) {
    const Window win = window_of(window);
    expect_label_field("u", u, p.h, p.w, win.du);
    expect_label_field("v", v, p.h, p.w, win.dv);
    expect_shape(out, "out", {static_cast<std::size_t>(p.h), static_cast<std::size_t>(p.w)});
    without_gil([&] { costs_at(p, win, u.data(), v.data(), outside, out.data()); });
}

void bits_label_costs(InBits bits0, InBits bits1, WindowTuple window, In<std::int16_t, 2> u,
                      In<std::int16_t, 2> v, double outside, Out<double, 2> out) {
    label_costs_of(bits_pair(bits0, bits1), window, u, v, outside, out);
}

void phi_label_costs(In<float, 3> phi0, In<float, 3> phi1, WindowTuple window,
                     In<std::int16_t, 2> u, In<std::int16_t, 2> v, double outside,
                     Out<double, 2> out) {
    label_costs_of(phi_pair(phi0, phi1), window, u, v, outside, out);
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

void rescan_bits(InBits bits0, InBits bits1, WindowTuple window,
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

bool all_within(Aligned<nb::ndarray<const float, nb::c_contig, nb::device::cpu>> a, float limit) {
    const float* data = a.data();
    return all_pieces(a.size(), [&](std::size_t begin, std::size_t end) {
        bool bad = false;
        for (std::size_t i = begin; i < end; ++i) bad |= !(std::fabs(data[i]) <= limit);
        return !bad;
    });
}

template <class Table>
std::vector<std::string> names_of(const std::vector<const Table*>& tables) {
    std::vector<std::string> names;
    for (const Table* table : tables) names.emplace_back(table->name);
    return names;
}

nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> room(std::size_t bytes) {
    using Room = Buffer<std::uint8_t>;
    auto room = std::make_unique<Room>(bytes);
    const nb::capsule owner(room.get(), [](void* p) noexcept { delete static_cast<Room*>(p); });
    return {room.release()->data(), {bytes}, owner};
}

// Rows and columns exchanged. The size of an element is known at compile time, or 0.
template <std::size_t known>
void turn_elements(const std::uint8_t* from, std::uint8_t* to, std::size_t h, std::size_t w,
                   std::size_t bytes) {
    constexpr std::size_t block = 16;
    if (known) bytes = known;
    parallel_for(side((w + block - 1) / block), [&](int k) {
        const std::size_t left = k * block, right = std::min(w, left + block);
        for (std::size_t top = 0; top < h; top += block)
            for (std::size_t x = left; x < right; ++x)
                for (std::size_t y = top; y < std::min(h, top + block); ++y)
                    std::memcpy(to + (x * h + y) * bytes, from + (y * w + x) * bytes,
                                known ? known : bytes);
    });
}

void turn(In<std::uint8_t, 3> array, Out<std::uint8_t, 3> out) {
    const std::size_t h = array.shape(0), w = array.shape(1), bytes = array.shape(2);
    expect_shape(out, "out", {w, h, bytes});
    const auto run = bytes == 2   ? turn_elements<2>
                     : bytes == 6 ? turn_elements<6>
                     : bytes == 8 ? turn_elements<8>
                                  : turn_elements<0>;
    without_gil([&] { run(array.data(), out.data(), h, w, bytes); });
}

void clear(Out<std::uint8_t, 1> bytes) {
    without_gil([&] {
        parallel_pieces<std::size_t>(bytes.size(), 1 << 20, [&](std::size_t begin, std::size_t end) {
            std::memset(bytes.data() + begin, 0, end - begin);
        });
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled kernels; use them through hamflow.matching.";
    set_interrupt_check(ctrl_c);

    m.def("levels", [] { return names_of(available_kernels()); },
          "Instruction-set levels that this machine can run, worst first.");
    m.def("level", [] { return std::string(active_kernels().name); }, "The level in use.");
    m.def("force_level",
          [](Maybe<std::string> name) { return force_kernels(name ? name->c_str() : nullptr); },
          nb::arg("name").none(), "Use this level (None: the best); False if it cannot be.");
    m.def("convolutions", [] { return names_of(available_convolutions()); },
          "Ways to compute networks on this machine, worst first.");
    m.def("convolution", [] { return std::string(active_convolutions().name); }, "That in use.");
    m.def("force_convolutions",
          [](Maybe<std::string> name) { return force_convolutions(name ? name->c_str() : nullptr); },
          nb::arg("name").none(), "Use this one (None: the best); False if it cannot be.");
    m.def("set_num_threads", set_num_threads, nb::arg("n"));
    m.def("get_num_threads", get_num_threads);
    m.def("add_caller", add_caller, nb::arg("difference"),
          "One more thread (1), or one less (-1), calls kernels at the same time as others.");
    m.def("room", room, nb::arg("bytes"), "Memory of undefined content, kept for others after use.");
    m.def("kept_bytes", kept_bytes, "How much memory is kept for others at the moment.");
    m.def("release_kept", release_kept, "Give the memory that is kept back to the system.");
    m.def("turn", turn, nb::arg("array").noconvert(), out("out"), "Exchange rows and columns.");
    m.def("clear", clear, out("bytes"), "Set all bytes to 0.");

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
    define_crf(m);
    define_descriptors(m);
    define_completion(m);
    define_refinement(m);
    define_io(m);
    define_scenes(m);
    m.def("label_costs", bits_label_costs, nb::arg("bits0").noconvert(), nb::arg("bits1"),
          nb::arg("window"), nb::arg("u"), nb::arg("v"), nb::arg("outside"), out("out"));
    m.def("label_costs", phi_label_costs, nb::arg("phi0").noconvert(), nb::arg("phi1"),
          nb::arg("window"), nb::arg("u"), nb::arg("v"), nb::arg("outside"), out("out"));
    const auto labels = [&](auto function) {  // converted, costs would become those of the first
        m.def("best_labels", function, nb::arg("costs").noconvert(), nb::arg("first"),
              out("labels"));
    };
    labels(best_labels<std::uint8_t>);
    labels(best_labels<std::int16_t>);
    labels(best_labels<float>);
    m.def("rescan_bits", rescan_bits, nb::arg("bits0"), nb::arg("bits1"), nb::arg("window"),
          nb::arg("outside"), nb::arg("v_labels"), out("flow"));
    m.def("rescan_phi", rescan_phi, nb::arg("phi0"), nb::arg("phi1"), nb::arg("window"),
          nb::arg("outside"), nb::arg("v_labels"), out("flow"));

    m.def("all_within", all_within, nb::arg("array"), nb::arg("limit"),
          "Whether no element is NaN or larger than the limit in absolute value.");
}
