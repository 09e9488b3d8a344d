// Vectors of labels for the chains of the CRF, as arrays and loops: see label_rows.inl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "labels.hpp"

namespace hamflow {
namespace portable {

template <class Scalar, int lanes>
struct LabelVector {
    Scalar x[lanes];
};

// What both arithmetics share; `Self` says what differs.
template <class Scalar, int lanes>
struct LabelLoops {
    using T = Scalar;
    using V = LabelVector<Scalar, lanes>;
    static constexpr int width = lanes;

    template <class Operation>
    static HAMFLOW_INLINE V map(V a, V b, const Operation& operation) {
        V r;
        for (int k = 0; k < lanes; ++k) r.x[k] = static_cast<T>(operation(a.x[k], b.x[k]));
        return r;
    }
    static HAMFLOW_INLINE V loadu(const T* p) {
        V v;
        std::memcpy(v.x, p, sizeof v.x);
        return v;
    }
    static HAMFLOW_INLINE void storeu(T* p, V v) { std::memcpy(p, v.x, sizeof v.x); }
    static HAMFLOW_INLINE V set1(T value) {
        V v;
        for (int k = 0; k < lanes; ++k) v.x[k] = value;
        return v;
    }
    static HAMFLOW_INLINE V min(V a, V b) {
        return map(a, b, [](T x, T y) { return x < y ? x : y; });
    }
    static HAMFLOW_INLINE V max(V a, V b) {
        return map(a, b, [](T x, T y) { return x > y ? x : y; });
    }
    // Two vectors in succession; from them the labels one before or after.
    struct Between {
        V a, b;
    };
    static HAMFLOW_INLINE Between between(V a, V b) { return {a, b}; }
    static HAMFLOW_INLINE V below(Between low, V v) {
        V r;
        r.x[0] = low.a.x[lanes - 1];
        for (int k = 1; k < lanes; ++k) r.x[k] = v.x[k - 1];
        return r;
    }
    static HAMFLOW_INLINE V above(V v, Between high) {
        V r;
        for (int k = 1; k < lanes; ++k) r.x[k - 1] = v.x[k];
        r.x[lanes - 1] = high.b.x[0];
        return r;
    }
    // The minimum of all lanes, in all lanes.
    static HAMFLOW_INLINE V min_across(V v) {
        T least = v.x[0];
        for (int k = 1; k < lanes; ++k) least = v.x[k] < least ? v.x[k] : least;
        return set1(least);
    }
    static HAMFLOW_INLINE T first(V v) { return v.x[0]; }

    // For chains side by side (chains_abreast.inl).
    static constexpr int group = lanes;
    static HAMFLOW_INLINE V zip_low(V a, V b) { return zip(a, b, 0); }
    static HAMFLOW_INLINE V zip_high(V a, V b) { return zip(a, b, lanes / 2); }
    static HAMFLOW_INLINE V zip(V a, V b, int from) {
        V r;
        for (int k = 0; k < lanes / 2; ++k) {
            r.x[2 * k] = a.x[from + k];
            r.x[2 * k + 1] = b.x[from + k];
        }
        return r;
    }
    static HAMFLOW_INLINE V load_pieces(const T* p, const std::ptrdiff_t* offset) {
        return loadu(p + offset[0]);
    }
    static HAMFLOW_INLINE void store_pieces(T* p, const std::ptrdiff_t* offset, V v) {
        storeu(p + offset[0], v);
    }
};

struct Labels16 : FixedLabels, LabelLoops<std::int16_t, 8> {
    using T = FixedLabels::T;
    static constexpr bool unrolled = false;  // GCC takes minutes for arrays
    // Differences of large values wrap around, and `times` takes them as unsigned.
    static HAMFLOW_INLINE V add(V a, V b) {
        return map(a, b, [](T x, T y) { return std::uint16_t(x + y); });
    }
    static HAMFLOW_INLINE V sub(V a, V b) {
        return map(a, b, [](T x, T y) { return std::uint16_t(x - y); });
    }
    static HAMFLOW_INLINE V adds(V a, V b) {
        return map(a, b, [](T x, T y) { return saturate16(x + y); });
    }
    static HAMFLOW_INLINE V share_of(Share g) { return set1(static_cast<T>(g)); }
    // Rounded down; both are unsigned here.
    static HAMFLOW_INLINE V times(V a, V g) {
        return map(a, g, [](T x, T y) {
            return (std::uint32_t(std::uint16_t(x)) * std::uint16_t(y)) >> 16;
        });
    }
};

struct Labels32 : FloatLabels, LabelLoops<float, 4> {
    using T = FloatLabels::T;
    static constexpr bool unrolled = false;  // GCC takes minutes for arrays
    static HAMFLOW_INLINE V add(V a, V b) {
        return map(a, b, [](T x, T y) { return x + y; });
    }
    static HAMFLOW_INLINE V adds(V a, V b) { return add(a, b); }
    static HAMFLOW_INLINE V sub(V a, V b) {
        return map(a, b, [](T x, T y) { return x - y; });
    }
    static HAMFLOW_INLINE V share_of(Share g) { return set1(g); }
    // Rounded down, which for what is not negative is cutting off; the solver's values fit an int.
    static HAMFLOW_INLINE V times(V a, V g) {
        return map(a, g, [](T x, T y) {
            const T product = x * y;
            const bool fits = product >= 0 && product < 2e9f;
            return fits ? static_cast<T>(static_cast<std::int32_t>(product)) : product;
        });
    }
};

using Chains16 = Labels16;
using Chains32 = Labels32;

}  // namespace portable
}  // namespace hamflow
