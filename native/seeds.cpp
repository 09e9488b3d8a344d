#include "seeds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

struct Seed {
    int pixel = -1;
    float x = 0, y = 0, u = 0, v = 0, trust = 0;
};

int central(const SeedChoice& p, int top, int left) {
    int best = -1, least = 0;
    for (int y = top; y < std::min(top + p.cell, p.h); ++y)
        for (int x = left; x < std::min(left + p.cell, p.w); ++x) {
            if (!p.trusted[static_cast<std::size_t>(y) * p.w + x]) continue;
            const int dy = 2 * (y - top) - (p.cell - 1), dx = 2 * (x - left) - (p.cell - 1);
            const int off = dy * dy + dx * dx;
            if (best < 0 || off < least) best = y * p.w + x, least = off;
        }
    return best;
}

Seed seed_at(const SeedChoice& p, int pixel) {
    const int x = pixel % p.w, y = pixel / p.w, radius = p.cell > 1 ? p.cell / 2 + 1 : 0;
    const float* own = p.flow + 2 * static_cast<std::size_t>(pixel);
    float sx = 0, sy = 0, su = 0, sv = 0, count = 0;
    for (int yy = std::max(y - radius, 0); yy <= std::min(y + radius, p.h - 1); ++yy)
        for (int xx = std::max(x - radius, 0); xx <= std::min(x + radius, p.w - 1); ++xx) {
            const std::size_t i = static_cast<std::size_t>(yy) * p.w + xx;
            const float* f = p.flow + 2 * i;
            if (!p.trusted[i] || !(std::abs(f[0] - own[0]) <= 1.01f) ||
                !(std::abs(f[1] - own[1]) <= 1.01f))
                continue;
            su += f[0], sv += f[1], count += 1;
            // Relative to the seed: sums of large coordinates would lose digits.
            sx += static_cast<float>(xx - x), sy += static_cast<float>(yy - y);
        }
    const float area = static_cast<float>((2 * radius + 1) * (2 * radius + 1));
    return {pixel, sx / count + static_cast<float>(x), sy / count + static_cast<float>(y),
            su / count, sv / count, count / area};
}

}  // namespace

int choose_seeds(const SeedChoice& p) {
    const int rows = (p.h + p.cell - 1) / p.cell, columns = (p.w + p.cell - 1) / p.cell;
    std::vector<Seed> seeds(static_cast<std::size_t>(rows) * columns);
    parallel_for(rows, [&](int row) {
        for (int column = 0; column < columns; ++column) {
            const int pixel = central(p, row * p.cell, column * p.cell);
            if (pixel >= 0)
                seeds[static_cast<std::size_t>(row) * columns + column] = seed_at(p, pixel);
        }
    });
    int count = 0;
    for (const Seed& s : seeds) {
        if (s.pixel < 0) continue;
        p.pixel[count] = s.pixel;
        p.place[2 * count] = s.x, p.place[2 * count + 1] = s.y;
        p.match[2 * count] = s.u, p.match[2 * count + 1] = s.v;
        p.trust[count++] = s.trust;
    }
    return count;
}

}  // namespace hamflow
