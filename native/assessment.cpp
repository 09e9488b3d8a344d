#include "assessment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "completion_kernels.hpp"
#include "popcount.hpp"
#include "threads.hpp"

namespace hamflow {
constexpr int rows_at_once = 4;

void there_and_back(const ThereAndBack& p) {
    parallel_pieces(p.h, rows_at_once, [&](int begin, int end) {
        completion_kernels().there_and_back(p, begin, end);
    });
}

void look_at_targets(const Targets& p) {
    parallel_pieces(p.h, rows_at_once, [&](int begin, int end) {
        for (int y = begin; y < end; ++y)
            for (int x = 0; x < p.w; ++x) {
                const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
                const float tx = std::rint(static_cast<float>(x) + p.flow[2 * i]);
                const float ty = std::rint(static_cast<float>(y) + p.flow[2 * i + 1]);
                float* out = p.out + 3 * i;
                out[0] = 0.5f, out[1] = 0, out[2] = 0;
                if (!(tx >= 0 && ty >= 0 && tx < static_cast<float>(p.w) &&
                      ty < static_cast<float>(p.h)))
                    continue;
                const std::size_t there =
                    static_cast<std::size_t>(ty) * p.w + static_cast<std::size_t>(tx);
                out[0] = static_cast<float>(popcount(p.first[i] ^ p.second[there])) / 64;
                out[1] = p.trusted[there];
                out[2] = p.texture[there];
            }
    });
}

void count_arrivals(const float* flow, int h, int w, float* cover) {
    // In whole numbers, so that the order does not matter; with a border for what is just outside.
    constexpr int parts = 16;
    const int pitch = w + 2;
    std::vector<std::uint32_t> counts(static_cast<std::size_t>(pitch) * (h + 2));
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
            const float* f = flow + 2 * (static_cast<std::size_t>(y) * w + x);
            const float tx = static_cast<float>(x) + f[0], ty = static_cast<float>(y) + f[1];
            if (!(tx > -1 && ty > -1 && tx < static_cast<float>(w) && ty < static_cast<float>(h)))
                continue;
            const int px = static_cast<int>((tx + 1) * parts), py = static_cast<int>((ty + 1) * parts);
            const std::uint32_t right = static_cast<std::uint32_t>(px % parts);
            const std::uint32_t below = static_cast<std::uint32_t>(py % parts);
            std::uint32_t* upper =
                counts.data() + static_cast<std::size_t>(py / parts) * pitch + px / parts;
            upper[0] += (parts - right) * (parts - below);
            upper[1] += right * (parts - below);
            upper[pitch] += (parts - right) * below;
            upper[pitch + 1] += right * below;
        }
    // Means of 3x3 pixels: single ones are left out wherever a surface is stretched a little.
    parallel_pieces(h, rows_at_once, [&](int begin, int end) {
        for (int y = begin; y < end; ++y)
            for (int x = 0; x < w; ++x) {
                std::uint32_t sum = 0, area = 0;
                for (int yy = std::max(y - 1, 0); yy <= std::min(y + 1, h - 1); ++yy)
                    for (int xx = std::max(x - 1, 0); xx <= std::min(x + 1, w - 1); ++xx) {
                        sum += counts[static_cast<std::size_t>(yy + 1) * pitch + xx + 1];
                        ++area;
                    }
                cover[static_cast<std::size_t>(y) * w + x] =
                    static_cast<float>(sum) / static_cast<float>(area * parts * parts);
            }
    });
}

void assess(const Assessment& p) {
    parallel_pieces(p.ways.h, rows_at_once, [&](int begin, int end) {
        completion_kernels().assess(p, begin, end);
    });
}

}  // namespace hamflow
