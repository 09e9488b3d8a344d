// What a labeling costs: the data term, pixel by pixel.
#include "labeling.hpp"

#include <algorithm>
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

template <class T>
void margins(int h, int w, int d, const T* slack, const std::int16_t* labels, float* out) {
    parallel_for(h, [&](int y) {
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            const T* s = slack + i * d;
            // Checked before the call, but another thread of the caller's may write to the labels.
            const int own = std::clamp<int>(labels[i], 0, d - 1);
            T best = std::numeric_limits<T>::max();
            for (int k = 0; k < own - 1; ++k) best = std::min(best, s[k]);
            for (int k = own + 2; k < d; ++k) best = std::min(best, s[k]);
            const bool any = own > 1 || own + 2 < d;
            out[i] = any ? static_cast<float>(best) - static_cast<float>(s[own])
                         : std::numeric_limits<float>::infinity();
        }
    });
}

}  // namespace

void distances_at(const BitsPair& p, const Window& win, const std::int16_t* u,
                  const std::int16_t* v, std::int16_t* out) {
    for_each_target(p.h, p.w, win, u, v, [&](std::size_t i, std::size_t to, bool inside) {
        int distance = inside ? 0 : -1;
        for (int k = 0; inside && k < p.words; ++k)
            distance += popcount(p.from(i)[k] ^ p.to(to)[k]);
        out[i] = static_cast<std::int16_t>(distance);
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

void label_margins(int h, int w, int d, const std::int16_t* slack, const std::int16_t* labels,
                   float* out) {
    margins(h, w, d, slack, labels, out);
}
void label_margins(int h, int w, int d, const float* slack, const std::int16_t* labels,
                   float* out) {
    margins(h, w, d, slack, labels, out);
}

}  // namespace hamflow
