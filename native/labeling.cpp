// What a labeling costs: the data term, pixel by pixel.
#include "labeling.hpp"

#include <limits>

#include "popcount.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

// at(from, to, inside) for every pixel and its target; `to` means nothing where that is outside.
template <class At>
void for_each_target(int h, int w, const Window& win, const std::int16_t* u,
                     const std::int16_t* v, const At& at) {
    parallel_for(h, [&](int y) {
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            const bool inside = u_labels(win, x, w).contains(u[i]) &&
                                v_labels(win, y, h).contains(v[i]);
            const std::size_t to =
                inside ? static_cast<std::size_t>(y + win.v0 + v[i]) * w + (x + win.u0 + u[i]) : 0;
            at(i, to, inside);
        }
    });
}

}  // namespace

void distances_at(const BitsPair& p, const Window& win, const std::int16_t* u,
                  const std::int16_t* v, std::int16_t* out) {
    for_each_target(p.h, p.w, win, u, v, [&](std::size_t i, std::size_t to, bool inside) {
        out[i] = static_cast<std::int16_t>(inside ? popcount(p.bits0[i] ^ p.bits1[to]) : -1);
    });
}

void costs_at(const PhiPair& p, const Window& win, const std::int16_t* u, const std::int16_t* v,
              double* out) {
    for_each_target(p.h, p.w, win, u, v, [&](std::size_t i, std::size_t to, bool inside) {
        double sum = inside ? 0 : std::numeric_limits<double>::quiet_NaN();
        for (int k = 0; inside && k < p.m; ++k)
            sum -= static_cast<double>(p.phi0[i * p.m + k]) * p.phi1[to * p.m + k];
        out[i] = sum;
    });
}

}  // namespace hamflow
