// Vectors of labels for the chains of the CRF, as arrays and loops: see label_rows.inl.
#pragma once

#include <cstdint>
#include <cstring>

#include "common.hpp"

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
};

// Rows of labels in fixed point, for the chains.
struct Labels16 : LabelLoops<std::int16_t, 8> {
    using Share = std::uint16_t;  // in units of 2^-16
    using Sum = std::int64_t;
    static constexpr T big = 32767, lowest = -32768;
    static constexpr Share nothing = 0;
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
    static Share share(int part, int of) {
        return static_cast<Share>((std::int64_t(part) << 16) / of);
    }
    static T twice(T x) { return saturate16(2 * x); }
};

// The same in whole numbers of float32.
struct Labels32 : LabelLoops<float, 4> {
    using Share = float;
    using Sum = double;
    static constexpr T big = 1e9f, lowest = -1e9f;
    static constexpr Share nothing = 0;
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
    static Share share(int part, int of) {
        return static_cast<Share>(part) / static_cast<Share>(of);
    }
    static T twice(T x) { return 2 * x; }
};

// Hamming distances of one descriptor to n others.
inline void row_distances(std::uint64_t bits, const std::uint64_t* targets, int n,
                          std::int16_t* out) {
    for (int k = 0; k < n; ++k) out[k] = static_cast<std::int16_t>(popcount64(bits ^ targets[k]));
}

}  // namespace portable
}  // namespace hamflow
