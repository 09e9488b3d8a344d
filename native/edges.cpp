#include "edges.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {

void smooth(const Smoothing& p) {
    const std::size_t row = static_cast<std::size_t>(p.w) * p.channels;
    const std::size_t border = static_cast<std::size_t>(p.radius) * p.channels;
    parallel_pieces(p.h, 8, [&](int begin, int end) {
        std::vector<float> padded(row + 2 * border);
        for (int y = begin; y < end; ++y) {
            float* __restrict column = padded.data() + border;
            std::fill_n(column, row, 0.0f);
            for (int k = -p.radius; k <= p.radius; ++k) {
                const float weight = p.weights[k + p.radius];
                const float* __restrict from =
                    p.image + static_cast<std::size_t>(std::clamp(y + k, 0, p.h - 1)) * row;
                for (std::size_t i = 0; i < row; ++i) column[i] += weight * from[i];
            }
            for (std::size_t i = 0; i < border; ++i) {
                padded[border - 1 - i] = column[p.channels - 1 - i % p.channels];
                padded[border + row + i] = column[row - p.channels + i % p.channels];
            }
            float* __restrict out = p.out + static_cast<std::size_t>(y) * row;
            std::fill_n(out, row, 0.0f);
            for (int k = 0; k <= 2 * p.radius; ++k) {
                const float weight = p.weights[k];
                const float* __restrict from =
                    padded.data() + static_cast<std::size_t>(k) * p.channels;
                for (std::size_t i = 0; i < row; ++i) out[i] += weight * from[i];
            }
        }
    });
}

void contrasts(const float* image, int h, int w, int channels, float* right, float* down) {
    const std::size_t row = static_cast<std::size_t>(w) * channels;
    const float count = static_cast<float>(channels);
    parallel_for(h, [&](int y) {
        const float* here = image + static_cast<std::size_t>(y) * row;
        const auto differences = [&](std::size_t ahead, int length, float* out) {
            for (int x = 0; x < length; ++x) {
                const float* a = here + static_cast<std::size_t>(x) * channels;
                float sum = 0;
                for (int c = 0; c < channels; ++c) sum += std::abs(a[ahead + c] - a[c]);
                out[x] = sum / count;
            }
            std::fill(out + length, out + w, 0.0f);
        };
        differences(static_cast<std::size_t>(channels), w - 1, right + static_cast<std::size_t>(y) * w);
        differences(row, y + 1 < h ? w : 0, down + static_cast<std::size_t>(y) * w);
    });
}

}  // namespace hamflow
