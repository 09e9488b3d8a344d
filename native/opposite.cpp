#include "opposite.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "threads.hpp"

namespace hamflow {

void adopt_opposite(const Opposite& p) {
    const float last_x = static_cast<float>(p.w - 1), last_y = static_cast<float>(p.h - 1);
    parallel_for(p.h, [&](int y) {
        float* flow = p.flow + 2 * static_cast<std::size_t>(y) * p.w;
        for (int x = 0; x < p.w; ++x, flow += 2) {
            const float tx = static_cast<float>(x) + flow[0], ty = static_cast<float>(y) + flow[1];
            if (!(tx >= 0 && ty >= 0 && tx <= last_x && ty <= last_y)) continue;
            const std::size_t there = static_cast<std::size_t>(ty + 0.5f) * p.w +
                                      static_cast<std::size_t>(tx + 0.5f);
            const float u = -p.opposite[2 * there], v = -p.opposite[2 * there + 1];
            // False for NaN.
            if (std::max(std::fabs(u - flow[0]), std::fabs(v - flow[1])) <= p.tolerance) {
                flow[0] = u;
                flow[1] = v;
            }
        }
    });
}

}  // namespace hamflow
