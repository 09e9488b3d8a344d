#include "resampling.hpp"

#include <algorithm>
#include <cstddef>

#include "threads.hpp"

namespace hamflow {

void reduce_image(const float* image, int h, int w, int channels, int factor, int out_h, int out_w,
                  float* out) {
    const std::size_t row = static_cast<std::size_t>(w) * channels;
    const float scale = 1 / (static_cast<float>(factor) * static_cast<float>(factor));
    parallel_for(out_h, [&](int y) {
        float* sums = out + static_cast<std::size_t>(y) * out_w * channels;
        std::fill_n(sums, static_cast<std::size_t>(out_w) * channels, 0.0f);
        for (int k = 0; k < factor; ++k) {
            const float* from = image + static_cast<std::size_t>(std::min(y * factor + k, h - 1)) * row;
            for (int x = 0; x < out_w; ++x)
                for (int j = 0; j < factor; ++j) {
                    const float* pixel =
                        from + static_cast<std::size_t>(std::min(x * factor + j, w - 1)) * channels;
                    for (int c = 0; c < channels; ++c)
                        sums[static_cast<std::size_t>(x) * channels + c] += pixel[c];
                }
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(out_w) * channels; ++i) sums[i] *= scale;
    });
}

}  // namespace hamflow
