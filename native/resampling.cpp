#include "resampling.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {

void reduce_image(const float* image, int h, int w, int channels, int factor, int out_h, int out_w,
                  float* out) {
    const std::size_t row = static_cast<std::size_t>(w) * channels;
    const float scale = 1 / (static_cast<float>(factor) * static_cast<float>(factor));
    parallel_for(out_h, [&](int y) {
        std::vector<float> sums(row, 0.0f);
        for (int k = 0; k < factor; ++k) {
            const float* from = image + static_cast<std::size_t>(std::min(y * factor + k, h - 1)) * row;
            for (std::size_t i = 0; i < row; ++i) sums[i] += from[i];
        }
        float* to = out + static_cast<std::size_t>(y) * out_w * channels;
        for (int x = 0; x < out_w; ++x, to += channels)
            for (int c = 0; c < channels; ++c) {
                float sum = 0;
                for (int k = 0; k < factor; ++k)
                    sum += sums[static_cast<std::size_t>(std::min(x * factor + k, w - 1)) * channels + c];
                to[c] = sum * scale;
            }
    });
}

}  // namespace hamflow
