// Sums of products for convolution.inl: AMX multiplies 16 pixels with 16 outputs, 64 activations
// each, in one instruction. What does not fill its tiles is left to VNNI, whose order of the weights
// it shares.
#pragma once

#include <immintrin.h>

#include "vnni_dot.hpp"

namespace hamflow {
namespace amx {
namespace {

constexpr int tile_pixels = 32;
constexpr int tile_words = 16;  // of a run, in one tile

// Registers: sums 0-3 (pixels 0-15 and 16-31, outputs 0-15 and 16-31), activations 4 and weights 5;
// 6 and 7 the same for the words at the end of a run that fill no tile.
struct alignas(64) TileShapes {
    std::uint8_t palette = 1, start = 0, zero[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};

    explicit TileShapes(int left) {
        for (int tile = 0; tile < 6; ++tile) row_bytes[tile] = 64, rows[tile] = 16;
        if (!left) return;
        row_bytes[6] = static_cast<std::uint16_t>(4 * left), rows[6] = 16;
        row_bytes[7] = 64, rows[7] = static_cast<std::uint8_t>(left);
    }
};

// Both halves of the outputs of one or two times 16 pixels.
template <bool two>
HAMFLOW_NOINLINE void dot_tiles(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                                const std::int32_t* first, std::int32_t* sums) {
    constexpr int row = 4 * output_group;  // bytes of a pixel's sums, and of a word's weights
    const std::ptrdiff_t pitch = r.pitch, beside = 16 * pitch;
    // The same 16 numbers in all rows.
    _tile_loadd(0, first, 0);
    _tile_loadd(1, first + 16, 0);
    if (two) {
        _tile_loadd(2, first, 0);
        _tile_loadd(3, first + 16, 0);
    }
    for (int run = 0; run < r.run_count; ++run) {
        const std::uint8_t* a = r.runs[run] + x * pitch;
        int word = 0;
        for (; word + tile_words <= r.run_words; word += tile_words) {
            _tile_loadd(4, a, pitch);
            _tile_loadd(5, weights, row);
            _tile_dpbusd(0, 4, 5);
            _tile_loadd(5, weights + 64, row);
            _tile_dpbusd(1, 4, 5);
            if (two) {
                _tile_loadd(4, a + beside, pitch);
                _tile_dpbusd(3, 4, 5);
                _tile_loadd(5, weights, row);
                _tile_dpbusd(2, 4, 5);
            }
            a += 4 * tile_words, weights += tile_words * row;
        }
        if (word == r.run_words) continue;
        _tile_loadd(6, a, pitch);
        _tile_loadd(7, weights, row);
        _tile_dpbusd(0, 6, 7);
        _tile_loadd(7, weights + 64, row);
        _tile_dpbusd(1, 6, 7);
        if (two) {
            _tile_loadd(6, a + beside, pitch);
            _tile_dpbusd(3, 6, 7);
            _tile_loadd(7, weights, row);
            _tile_dpbusd(2, 6, 7);
        }
        weights += (r.run_words - word) * row;
    }
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + 16, row);
    if (two) {
        _tile_stored(2, sums + 16 * output_group, row);
        _tile_stored(3, sums + 16 * output_group + 16, row);
    }
}

template <bool wide, int pixels>
HAMFLOW_INLINE void dot_tile(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                             const std::int32_t* first, std::int32_t* sums) {
    constexpr int at_once = hamflow::tile_pixels;
    if constexpr (pixels <= at_once)
        hamflow::dot_tile<wide, pixels>(r, x, weights, first, sums);
    else if constexpr (wide)
        for (int p = 0; p < pixels; p += at_once)
            hamflow::dot_tile<wide, at_once>(r, x + p, weights, first, sums + p * output_group);
    else
        dot_tiles<(pixels > 16)>(r, x, weights, first, sums);
}

}  // namespace
}  // namespace amx
}  // namespace hamflow
