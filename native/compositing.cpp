#include "compositing.hpp"

#include <algorithm>
#include <cstring>

namespace hamflow {

namespace {

constexpr int steps = 256;  // positions between two texels
constexpr float full = 255 * 256;
constexpr float whole = static_cast<float>(1 - 1e-5);  // full coverage, up to rounding

// The comparisons are written such that NaN goes to 0.
int position(float place, int count) {
    const float last = static_cast<float>((count - 1) * steps - 1);
    const float scaled = place * steps;
    return static_cast<int>(scaled > 0 ? (scaled < last ? scaled : last) : 0.0f);
}

std::uint64_t interpolated(const Texels& t, float x, float y) {
    const int column = position(x, t.width), row = position(y, t.height);
    unsigned across = column & (steps - 1), down = row & (steps - 1);
    const std::uint64_t* at =
        t.words + static_cast<std::size_t>(row / steps) * t.width + column / steps;
    // The four weights, whose rounding errors cancel.
    const unsigned both = (across * down + steps / 2) / steps;
    across -= both;
    down -= both;
    return at[0] * (steps - across - down - both) + at[1] * across + at[t.width] * down +
           at[t.width + 1] * both;
}

// Half the binary logarithm, rounded up, of a squared size.
int level_of(float square) {
    std::uint32_t bits;
    std::memcpy(&bits, &square, sizeof bits);
    const int exponent = static_cast<int>(bits >> 23 & 255);
    return exponent == 255 ? 0 : std::max(exponent - 126, 0) >> 1;  // not finite: none
}

}  // namespace

void look_up(const Texels& texels, std::size_t n, const float* x, const float* y,
             std::uint16_t* lanes) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t word = interpolated(texels, x[i], y[i]);
        std::memcpy(lanes + 4 * i, &word, sizeof word);
    }
}

void plane_texels(const float* m, const Atlas& atlas, std::size_t n, const float* x,
                  const float* y, float* at_x, float* at_y) {
    const auto square = [](float a) { return a * a; };
    for (std::size_t i = 0; i < n; ++i) {
        const float inverse_depth = m[6] * x[i] + (m[7] * y[i] + m[8]);
        const bool front = inverse_depth > 0;
        const float scale = 1 / (front ? inverse_depth : 1.0f);
        const float column = (m[0] * x[i] + (m[1] * y[i] + m[2])) * scale;
        const float row = (m[3] * x[i] + (m[4] * y[i] + m[5])) * scale;
        // How many texels a pixel is wide and high decides which copy it is looked up in.
        const float across = square(m[0] - column * m[6]) + square(m[3] - row * m[6]);
        const float down = square(m[1] - column * m[7]) + square(m[4] - row * m[7]);
        const int level =
            std::min(level_of(std::max(across, down) * square(scale)), atlas.levels - 1);
        const float* place = atlas.places + 4 * level;
        const float factor = 1.0f / static_cast<float>(1 << level);
        // The center of a texel of a copy is that of several of the texture.
        const float u = (column + 0.5f) * factor - 0.5f, v = (row + 0.5f) * factor - 0.5f;
        const float width = place[2] - place[0], height = place[3] - place[1];
        const bool inside = front && u > -0.5f && u < width + 0.5f && v > -0.5f &&
                            v < height + 0.5f;
        const bool there = atlas.solid || inside;
        at_x[i] = there ? std::min(std::max(u, 0.0f), width) + place[0] : atlas.nowhere_x;
        at_y[i] = there ? std::min(std::max(v, 0.0f), height) + place[1] : atlas.nowhere_y;
    }
}

std::size_t pixels_above(const float* image, int w, const int* box, float least,
                         std::int64_t* index, float* x, float* y) {
    std::size_t n = 0;
    for (int row = box[1]; row < box[3]; ++row) {
        for (int column = box[0]; column < box[2]; ++column) {
            const std::int64_t i = static_cast<std::int64_t>(row) * w + column;
            index[n] = i;
            x[n] = static_cast<float>(column);
            y[n] = static_cast<float>(row);
            n += image[i] > least;
        }
    }
    return n;
}

void paint(std::size_t n, const std::int64_t* index, const std::uint16_t* lanes, const Fog* fog,
           float* light, float* total) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint16_t* color = lanes + 4 * i;
        if (color[3] == 0) continue;
        const float weight = light[index[i]] * color[3] * (1 / full);
        light[index[i]] -= weight;
        // Most pixels are covered by one surface alone.
        const float share = weight < whole ? weight : 1.0f;
        float* sum = total + 3 * index[i];
        for (int c = 0; c < 3; ++c) {
            float seen = color[c];
            if (fog) {
                const std::size_t k = fog->same ? 0 : i;
                seen = seen * fog->rest[k] + fog->thick[k] * fog->color[c];
            }
            sum[c] += seen * share;
        }
    }
}

void halve(const std::uint64_t* fine, int stride, int h, int w, std::uint64_t* coarse) {
    constexpr std::uint64_t twos = 0x0002000200020002, bytes = 0x00ff00ff00ff00ff;
    for (int row = 0; row < h; ++row) {
        const std::uint64_t* upper = fine + static_cast<std::size_t>(2 * row) * stride;
        const std::uint64_t* lower = upper + stride;
        for (int column = 0; column < w; ++column) {
            const std::uint64_t sum = upper[2 * column] + upper[2 * column + 1] +
                                      lower[2 * column] + lower[2 * column + 1];
            *coarse++ = (sum + twos) >> 2 & bytes;
        }
    }
}

}  // namespace hamflow
