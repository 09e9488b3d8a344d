// What the vectors of labels of all levels share: see label_rows.inl.
#pragma once

#include <cstdint>

#include "common.hpp"

namespace hamflow {

// Rows of labels in fixed point, for the chains.
struct FixedLabels {
    using T = std::int16_t;
    using Share = std::uint16_t;  // in units of 2^-16
    using Sum = std::int64_t;
    static constexpr T big = 32767, lowest = -32768;
    static constexpr Share nothing = 0;
    static HAMFLOW_INLINE Share share(int part, int of) {
        return static_cast<Share>((std::int64_t(part) << 16) / of);
    }
    static HAMFLOW_INLINE T twice(T x) { return saturate16(2 * x); }
};

// The same in whole numbers of float32.
struct FloatLabels {
    using T = float;
    using Share = float;
    using Sum = double;
    static constexpr T big = 1e9f, lowest = -1e9f;
    static constexpr Share nothing = 0;
    static HAMFLOW_INLINE Share share(int part, int of) {
        return static_cast<Share>(part) / static_cast<Share>(of);
    }
    static HAMFLOW_INLINE T twice(T x) { return 2 * x; }
};

// Hamming distances of one descriptor to n others; a level may have a better one of its own.
template <int words, class T>
HAMFLOW_INLINE void row_distances(const std::uint64_t* bits, const std::uint64_t* targets, int n,
                                  T* out) {
    std::uint64_t pixel[words];
    for (int i = 0; i < words; ++i) pixel[i] = bits[i];
    for (int k = 0; k < n; ++k) {
        int sum = 0;
        for (int i = 0; i < words; ++i) sum += popcount64(pixel[i] ^ targets[k * words + i]);
        out[k] = static_cast<T>(sum);
    }
}

}  // namespace hamflow
