// What all bindings share: how arrays come in, how they are checked, and the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace hamflow::bind {
template <class Array>
struct Aligned;
}

// As nanobind's own for the array, which knows nothing about alignment: where an array may be
// converted, one that is not aligned is copied, and elsewhere it is refused.
template <class Array>
struct nanobind::detail::type_caster<hamflow::bind::Aligned<Array>> {
    NB_TYPE_CASTER(hamflow::bind::Aligned<Array>, make_caster<Array>::Name)

    bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
        make_caster<Array> plain;
        if (!plain.from_python(source, flags, cleanup)) return false;
        value = hamflow::bind::Aligned<Array>(std::move(plain.value));
        if (value.holds()) return true;
        if (!(flags & cast_flags::convert)) return false;
        try {
            const object copy = source.attr("copy")();
            if (!plain.from_python(copy, flags, cleanup)) return false;
        } catch (python_error& error) {
            error.restore();
            PyErr_Clear();
            return false;
        }
        value = hamflow::bind::Aligned<Array>(std::move(plain.value));
        return value.holds();
    }
};

namespace hamflow::bind {

// An array whose elements begin at multiples of their size, as the kernels expect: NumPy can make
// others, from a buffer with an odd offset.
template <class Array>
struct Aligned : Array {
    Aligned() = default;
    explicit Aligned(Array&& array) : Array(std::move(array)) {}
    bool holds() const {
        return reinterpret_cast<std::uintptr_t>(this->data()) %
                   alignof(typename Array::Scalar) == 0;
    }
};

template <class T, int rank>
using In = Aligned<nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>>;
template <class T, int rank>
using Out = Aligned<nb::ndarray<T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>>;
using WindowTuple = std::tuple<int, int, int, int>;
template <class T>
using Maybe = std::optional<T>;

// Labels are int16, and an argmin stores a vector's number in a byte: see min_projection.inl.
constexpr int max_labels = 4096;

inline Window window_of(const WindowTuple& t) {
    const Window win{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t)};
    const auto within = [](int first, int count) {
        return count >= 1 && count <= max_labels && first >= -(1 << 24) && first <= (1 << 24);
    };
    if (!within(win.u0, win.du) || !within(win.v0, win.dv))
        throw nb::value_error("window: each side needs 1 to 4096 labels within +-2^24 pixels");
    return win;
}

inline int side(std::size_t n) {
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

// Arrays of one shape, each after its name.
template <class Array, class... Others>
void expect_shapes(std::initializer_list<std::size_t> shape, const char* name, const Array& array,
                   const Others&... others) {
    expect_shape(array, name, shape);
    if constexpr (sizeof...(others) > 0) expect_shapes(shape, others...);
}

// Descriptors of one word, h x w, or of one or two, h x w x words.
using InBits = Aligned<nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu>>;

// Whether a kernel takes a second field of another height.
enum class Heights { same, any };

inline BitsPair bits_pair(const InBits& b0, const InBits& b1, Heights heights = Heights::same) {
    const std::size_t words = b0.ndim() == 3 ? b0.shape(2) : 1;
    if (b0.ndim() < 2 || b0.ndim() > 3 || words < 1 || words > 2)
        throw nb::value_error("bits0 has the wrong shape");
    if (b1.ndim() != b0.ndim()) throw nb::value_error("bits1 has the wrong shape");
    const std::size_t rows = (heights == Heights::same ? b0 : b1).shape(0);
    expect_shape(b1, "bits1", {rows, b0.shape(1)});
    if (b0.ndim() == 3) expect_shape(b1, "bits1", {rows, b0.shape(1), words});
    return BitsPair(b0.data(), b1.data(), side(b0.shape(0)), side(b0.shape(1)),
                    static_cast<int>(words), side(b1.shape(0)));
}

inline PhiPair phi_pair(const In<float, 3>& p0, const In<float, 3>& p1,
                        Heights heights = Heights::same) {
    const std::size_t rows = (heights == Heights::same ? p0 : p1).shape(0);
    expect_shape(p1, "phi1", {rows, p0.shape(1), p0.shape(2)});
    return {p0.data(), p1.data(), side(p0.shape(0)), side(p0.shape(1)), side(p0.shape(2)),
            side(p1.shape(0))};
}

// Volumes h x w x du and h x w x dv.
template <class Pair, class U, class V>
void expect_volumes(const Pair& p, const Window& win, const U& u, const V& v) {
    const auto h = static_cast<std::size_t>(p.h), w = static_cast<std::size_t>(p.w);
    expect_shape(u, "the volume over u", {h, w, static_cast<std::size_t>(win.du)});
    expect_shape(v, "the volume over v", {h, w, static_cast<std::size_t>(win.dv)});
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

inline Direction direction_of(const std::string& to) {
    if (to == "u") return Direction::to_u;
    if (to == "v") return Direction::to_v;
    throw nb::value_error("the receiver of a message is 'u' or 'v'");
}

template <class T>
T* data_or_null(Maybe<Out<T, 3>>& a) {
    return a ? a->data() : nullptr;
}

// True if is_good(begin, end) holds for every piece of [0, n).
template <class IsGood>
bool all_pieces(std::size_t n, const IsGood& is_good) {
    std::atomic<bool> good{true};
    without_gil([&] {
        parallel_pieces<std::size_t>(n, 1 << 16, [&](std::size_t begin, std::size_t end) {
            if (!is_good(begin, end)) good = false;
        });
    });
    return good;
}

// A copy of numbers that are checked and then used without the GIL, when another thread may write
// to the array: the copy is what is to be checked.
template <class T>
std::vector<T> snapshot(const In<T, 1>& array) {
    return {array.data(), array.data() + array.shape(0)};
}

// A label outside of the window means nothing; the kernels check targets, not labels.
inline void expect_labels(const char* name, const std::int16_t* labels, std::size_t n, int count) {
    const bool good = all_pieces(n, [&](std::size_t begin, std::size_t end) {
        bool bad = false;
        for (std::size_t i = begin; i < end; ++i) bad |= labels[i] < 0 || labels[i] >= count;
        return !bad;
    });
    if (!good)
        throw nb::value_error((std::string(name) + " has labels outside of the window").c_str());
}

template <class Array>
void expect_label_field(const char* name, const Array& labels, int h, int w, int count) {
    expect_shape(labels, name, {static_cast<std::size_t>(h), static_cast<std::size_t>(w)});
    expect_labels(name, labels.data(), labels.size(), count);
}

// A converted copy of an output would take the results with it.
inline auto out(const char* name) { return nb::arg(name).noconvert(); }

constexpr std::size_t max_pixels = 1u << 30;  // their numbers, and twice as many, are int
constexpr std::size_t max_candidates = 256;
constexpr int max_rounds = 1000, max_steps = 10000;

inline void expect_area(std::size_t h, std::size_t w) {
    if (static_cast<std::size_t>(side(h)) * side(w) > max_pixels)
        throw nb::value_error("an image must have at most 2^30 pixels");
}

inline void expect_rounds(int rounds) {
    if (rounds < 0 || rounds > max_rounds) throw nb::value_error("rounds: from 0 to 1000");
}

template <class... Numbers>
void expect_finite(const char* name, Numbers... numbers) {
    if (!(std::isfinite(numbers) && ...))
        throw nb::value_error((std::string(name) + ": only finite numbers").c_str());
}

void define_crf(nb::module_& m);
void define_descriptors(nb::module_& m);
void define_completion(nb::module_& m);
void define_refinement(nb::module_& m);
void define_io(nb::module_& m);
void define_scenes(nb::module_& m);

}  // namespace hamflow::bind
