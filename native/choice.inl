// Layers of the network that scores candidates: see choice.cpp. Every sum begins with the bias or the
// start and then has one order, so that all levels give the same bytes.

// One row of the result.
void compare_colors_row(const ColorDifference& p, int label, int row) {
    const int y = row * p.step, columns = (p.w + p.step - 1) / p.step, n = p.channels;
    const int rows = (p.h + p.step - 1) / p.step;
    const std::size_t width = static_cast<std::size_t>(p.w) * n;
    const float* motion = p.motion + 2 * (static_cast<std::size_t>(label) * p.h + y) * p.w;
    const float* first = p.first + static_cast<std::size_t>(y) * width;
    float* out = p.out + (static_cast<std::size_t>(label) * rows + row) * columns;
    const auto within = [](float at, int side) HAMFLOW_INLINE_LAMBDA {
        const float most = static_cast<float>(side - 1);
        return at > 0 ? (at < most ? at : most) : 0.0f;  // 0 also for NaN
    };
    for (int column = 0; column < columns; column += lanes) {
        float sums[lanes] = {};
        const int count = columns - column < lanes ? columns - column : lanes;
        for (int k = 0; k < count; ++k) {
            const int x = (column + k) * p.step;
            const float tx = within(static_cast<float>(x) + motion[2 * x], p.w);
            const float ty = within(static_cast<float>(y) + motion[2 * x + 1], p.h);
            const int left = static_cast<int>(tx), above = static_cast<int>(ty);
            const float fx = tx - static_cast<float>(left), fy = ty - static_cast<float>(above);
            const std::size_t right = left + 1 < p.w ? static_cast<std::size_t>(n) : 0;
            const std::size_t down = above + 1 < p.h ? width : 0;
            const float* a = p.second + static_cast<std::size_t>(above) * width +
                             static_cast<std::size_t>(left) * n;
            const float* own = first + static_cast<std::size_t>(x) * n;
            float sum = 0;
            for (int c = 0; c < n; ++c, ++a) {
                const float upper = a[0] + fx * (a[right] - a[0]);
                const float lower = a[down] + fx * (a[down + right] - a[down]);
                const float apart = upper + fy * (lower - upper) - own[c];
                sum += apart < 0 ? -apart : apart;
            }
            sums[k] = sum / static_cast<float>(n);
        }
        log(Floats::load(sums) + Floats(0.01f)).store(sums);
        std::memcpy(out + column, sums, sizeof(float) * static_cast<std::size_t>(count));
    }
}

constexpr int choice_block = native_lanes == 16 ? 8 : 4;  // outputs whose sums stay in registers

// Sixteen pixels of half of the size become thirty-two: the lower or upper half of them.
HAMFLOW_INLINE Floats doubled(const float* row, int x) {
    float out[lanes];
    for (int k = 0; k < lanes; ++k) out[k] = row[(x + k) / 2];
    return Floats::load(out);
}

template <int side>
HAMFLOW_INLINE void choice_sums(const ChoiceLayer& p, int first, int y, int x, Floats* sums) {
    const float* w = p.weights + first;
    for (int c = 0; c < p.inputs; ++c)
        for (int dy = 0; dy < side; ++dy) {
            const float* row = p.in.at(c, y + dy - side / 2) + x - side / 2;
            for (int dx = 0; dx < side; ++dx, w += p.outputs) {
                const Floats value = Floats::load(row + dx);
                unroll<choice_block>([&](auto k) HAMFLOW_INLINE_LAMBDA {
                    sums[k] += value * Floats(w[k]);
                });
            }
        }
}

void choice_layer(const ChoiceLayer& p, int begin, int end) {
    const int w = p.out.w;
    const bool half = p.start != nullptr && p.start->w != w;
    for (int y = begin; y < end; ++y)
        for (int first = 0; first < p.outputs; first += choice_block)
            for (int x = 0; x < w; x += lanes) {
                Floats sums[choice_block];
                unroll<choice_block>([&](auto k) HAMFLOW_INLINE_LAMBDA {
                    sums[k] = Floats(p.bias != nullptr ? p.bias[first + k] : 0.0f);
                    if (p.start == nullptr) return;
                    const float* row = p.start->at(first + k, half ? y / 2 : y);
                    sums[k] += half ? doubled(row, x) : Floats::load(row + x);
                });
                if (p.side == 1)
                    choice_sums<1>(p, first, y, x, sums);
                else
                    choice_sums<3>(p, first, y, x, sums);
                unroll<choice_block>([&](auto k) HAMFLOW_INLINE_LAMBDA {
                    float* to = p.out.at(first + k, y) + x;
                    (p.rectified ? max(sums[k], Floats(0.0f)) : sums[k]).store(to);
                    for (int beyond = w - x; beyond < lanes; ++beyond) to[beyond] = 0.0f;
                });
            }
}

// Means over 2 x 2 pixels, fewer at the right and lower border.
void choice_halved(const FeatureMaps& in, const FeatureMaps& out, int channels, int begin, int end) {
    for (int c = 0; c < channels; ++c)
        for (int y = begin; y < end; ++y) {
            const float* above = in.at(c, 2 * y);
            const bool both = 2 * y + 1 < in.h;
            const float* below = both ? in.at(c, 2 * y + 1) : above;
            float* to = out.at(c, y);
            const int whole = in.w / 2;
            for (int x = 0; x < whole; ++x)
                to[x] = ((above[2 * x] + above[2 * x + 1]) + (below[2 * x] + below[2 * x + 1])) * 0.25f;
            if (whole < out.w) to[whole] = (above[2 * whole] + below[2 * whole]) * 0.5f;
        }
}

// Bounded features of one candidate as planes.
void choice_bounded(const Choice& p, int label, const FeatureMaps& out) {
    const std::size_t n = static_cast<std::size_t>(p.h) * p.w;
    for (int c = 0; c < choice_features; ++c) {
        const float low = p.network[c], high = p.network[choice_features + c];
        const float* from = p.features + n * (static_cast<std::size_t>(label) * choice_features + c);
        for (int y = 0; y < p.h; ++y, from += p.w) {
            float* to = out.at(c, y);
            for (int x = 0; x < p.w; ++x) {
                const float value = from[x] > low ? from[x] : low;
                to[x] = value < high ? value : high;
            }
        }
    }
}

// Mean and largest value over the candidates, one channel after the other.
void choice_shared(const FeatureMaps* all, int labels, int channels, const FeatureMaps& out,
                   int begin, int end) {
    const Floats share(1.0f / static_cast<float>(labels));
    for (int c = 0; c < channels; ++c)
        for (int y = begin; y < end; ++y)
            for (int x = 0; x < out.w; x += lanes) {
                Floats sum = Floats::load(all[0].at(c, y) + x), most = sum;
                for (int k = 1; k < labels; ++k) {
                    const Floats value = Floats::load(all[k].at(c, y) + x);
                    sum += value;
                    most = max(most, value);
                }
                (sum * share).store(out.at(c, y) + x);
                most.store(out.at(channels + c, y) + x);
            }
}
