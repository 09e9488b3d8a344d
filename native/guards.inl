// Motion boundaries of a flow as weights of the refinement, and flow at a larger size.

constexpr int near_reach = 2;  // pixels: features reach as far across a boundary

// The largest square of a jump to a neighbor of each pixel of a row.
void jump_row(const Guards& p, int y, float* __restrict largest) {
    const int w = p.w;
    const float* here = p.flow + 2 * static_cast<std::size_t>(y) * w;
    const auto add = [&](const float* __restrict flow, std::ptrdiff_t to, int begin,
                         int end) {
        for (int x = begin; x < end; ++x) {
            const float du = flow[2 * (x + to)] - flow[2 * x];
            const float dv = flow[2 * (x + to) + 1] - flow[2 * x + 1];
            const float square = du * du + dv * dv;
            largest[x] = square > largest[x] ? square : largest[x];
        }
    };
    std::fill_n(largest, w, 0.0f);
    add(here, 1, 0, w - 1);
    add(here, -1, 1, w);
    if (y > 0) add(here, -w, 0, w);
    if (y + 1 < p.h) add(here, w, 0, w);
}

void edge_row(const Guards& p, int y) {
    const int w = p.w;
    const std::size_t row = static_cast<std::size_t>(y) * w;
    const float* __restrict flow = p.flow + 2 * row;
    const float scale = 1 / (p.boundary * p.boundary);
    const auto weigh = [&](std::ptrdiff_t to, int count, float* __restrict out) {
        for (int x = 0; x < count; ++x) {
            const float du = flow[2 * (x + to)] - flow[2 * x];
            const float dv = flow[2 * (x + to) + 1] - flow[2 * x + 1];
            out[x] = 1 / (1 + (du * du + dv * dv) * scale);
        }
        std::fill(out + count, out + w, 0.0f);
    };
    weigh(1, w - 1, p.right + row);
    weigh(w, y + 1 < p.h ? w : 0, p.down + row);
}

void larger(float* __restrict to, const float* __restrict from, int count) {
    for (int x = 0; x < count; ++x) to[x] = from[x] > to[x] ? from[x] : to[x];
}

void compute_guards(const Guards& p) {
    const int w = p.w;
    for_blocks(RowBlocks(p.h, 16), [&](int begin, int end) {
        for (int y = begin; y < end; ++y) edge_row(p, y);
        if (!(p.near > 0)) {
            const std::size_t from = static_cast<std::size_t>(begin) * w;
            std::copy(p.weight + from, p.weight + static_cast<std::size_t>(end) * w,
                      p.guarded + from);
            return;
        }
        constexpr int ring = 8;
        Buffer<float> jumps(w), rows(static_cast<std::size_t>(ring) * w);
        const auto row = [&](int y) {
            return rows.data() + static_cast<std::size_t>(y % ring) * w;
        };
        int next = std::max(begin - near_reach, 0);
        const float scale = 1 / (p.near * p.near);
        for (int y = begin; y < end; ++y) {
            for (; next <= std::min(y + near_reach, p.h - 1); ++next) {
                jump_row(p, next, jumps.data());
                std::copy_n(jumps.data(), w, row(next));
                for (int k = 1; k <= std::min(near_reach, w - 1); ++k) {
                    larger(row(next), jumps.data() + k, w - k);
                    larger(row(next) + k, jumps.data(), w - k);
                }
            }
            std::copy_n(row(y), w, jumps.data());
            for (int k = 1; k <= near_reach; ++k) {
                if (y >= k) larger(jumps.data(), row(y - k), w);
                if (y + k < p.h) larger(jumps.data(), row(y + k), w);
            }
            const float *__restrict square = jumps.data();
            const float *__restrict weight = p.weight + static_cast<std::size_t>(y) * w;
            float *__restrict out = p.guarded + static_cast<std::size_t>(y) * w;
            for (int x = 0; x < w; ++x) out[x] = weight[x] / (1 + square[x] * scale);
        }
    });
}

void upsample_linear(const Upsampling& p) {
    struct Place {
        int before, after;
        float share;
    };
    const auto place = [&](int i, int have) {
        float at = (static_cast<float>(i) + 0.5f) / static_cast<float>(p.factor) - 0.5f;
        at = std::min(std::max(at, 0.0f), static_cast<float>(have - 1));
        const int before = static_cast<int>(at);
        return Place{before, std::min(before + 1, have - 1), at - static_cast<float>(before)};
    };
    Buffer<Place> columns(p.out_w);
    for (int x = 0; x < p.out_w; ++x) columns[x] = place(x, p.w);
    const std::size_t pitch = static_cast<std::size_t>(p.w) * p.channels;
    for_blocks(RowBlocks(p.out_h, 16), [&](int begin, int end) {
        Buffer<float> line(pitch);
        for (int y = begin; y < end; ++y) {
            const Place row = place(y, p.h);
            const float* __restrict lower = p.field + row.before * pitch;
            const float* __restrict upper = p.field + row.after * pitch;
            float* __restrict mixed = line.data();
            const float share = row.share;
            // In this order equal neighbors give exactly their value.
            for (std::size_t x = 0; x < pitch; ++x)
                mixed[x] = lower[x] + share * (upper[x] - lower[x]);
            float* __restrict out =
                p.out + static_cast<std::size_t>(y) * p.out_w * p.channels;
            for (int x = 0; x < p.out_w; ++x)
                for (int c = 0; c < p.channels; ++c) {
                    const float a = mixed[columns[x].before * p.channels + c];
                    const float b = mixed[columns[x].after * p.channels + c];
                    *out++ = a + columns[x].share * (b - a);
                }
        }
    });
}
