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

namespace {

struct Between {
    int before, after;
    float share;

    Between(int at, int factor, int count) {
        float place = (static_cast<float>(at) + 0.5f) / static_cast<float>(factor) - 0.5f;
        place = std::clamp(place, 0.0f, static_cast<float>(count - 1));
        before = static_cast<int>(place);
        after = std::min(before + 1, count - 1);
        share = place - static_cast<float>(before);
    }
};

}  // namespace

void enlarge_field(const float* field, int h, int w, int channels, int factor, int out_h, int out_w,
                   float* out) {
    const std::size_t row = static_cast<std::size_t>(w) * channels;
    std::vector<Between> columns;
    for (int x = 0; x < out_w; ++x) columns.emplace_back(x, factor, w);
    parallel_for(out_h, [&](int y) {
        const Between at(y, factor, h);
        const float* lower = field + static_cast<std::size_t>(at.before) * row;
        const float* upper = field + static_cast<std::size_t>(at.after) * row;
        std::vector<float> between(row);
        // In this order equal neighbors give exactly their value.
        for (std::size_t i = 0; i < row; ++i) between[i] = lower[i] + at.share * (upper[i] - lower[i]);
        float* to = out + static_cast<std::size_t>(y) * out_w * channels;
        for (const Between& column : columns) {
            const float* a = between.data() + static_cast<std::size_t>(column.before) * channels;
            const float* b = between.data() + static_cast<std::size_t>(column.after) * channels;
            for (int c = 0; c < channels; ++c) *to++ = a[c] + column.share * (b[c] - a[c]);
        }
    });
}

}  // namespace hamflow
