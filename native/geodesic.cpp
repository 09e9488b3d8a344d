// Distances to several sets of pixels along paths that avoid image edges, by raster sweeps: exact
// after as many rounds as a shortest path has turns against the direction of the sweeps, which
// in images are few.
#include "geodesic.hpp"

#include <algorithm>
#include <cstddef>

#include "threads.hpp"

namespace hamflow {
namespace {

constexpr float unreached = 1e30f;

void sweep_forward(const Geodesic& p, float* d) {
    for (int y = 0; y < p.h; ++y) {
        float* row = d + static_cast<std::size_t>(y) * p.w;
        if (y > 0) {
            const float* step = p.down + static_cast<std::size_t>(y - 1) * p.w;
            for (int x = 0; x < p.w; ++x) row[x] = std::min(row[x], row[x - p.w] + step[x]);
        }
        const float* step = p.right + static_cast<std::size_t>(y) * p.w;
        for (int x = 1; x < p.w; ++x) row[x] = std::min(row[x], row[x - 1] + step[x - 1]);
        for (int x = p.w - 2; x >= 0; --x) row[x] = std::min(row[x], row[x + 1] + step[x]);
    }
}

void sweep_backward(const Geodesic& p, float* d) {
    for (int y = p.h - 2; y >= 0; --y) {
        float* row = d + static_cast<std::size_t>(y) * p.w;
        const float* down = p.down + static_cast<std::size_t>(y) * p.w;
        for (int x = 0; x < p.w; ++x) row[x] = std::min(row[x], row[x + p.w] + down[x]);
        const float* step = p.right + static_cast<std::size_t>(y) * p.w;
        for (int x = 1; x < p.w; ++x) row[x] = std::min(row[x], row[x - 1] + step[x - 1]);
        for (int x = p.w - 2; x >= 0; --x) row[x] = std::min(row[x], row[x + 1] + step[x]);
    }
}

}  // namespace

void geodesic_distances(const Geodesic& p) {
    const std::size_t n = static_cast<std::size_t>(p.h) * p.w;
    parallel_for(p.sets, [&](int set) {
        const std::uint8_t* source = p.source + set * n;
        float* d = p.distance + set * n;
        for (std::size_t i = 0; i < n; ++i) d[i] = source[i] ? 0.0f : unreached;
        for (int round = 0; round < p.rounds; ++round) {
            sweep_forward(p, d);
            sweep_backward(p, d);
        }
    });
}

}  // namespace hamflow
