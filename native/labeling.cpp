// What a labeling costs: the data term, pixel by pixel.
#include "labeling.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

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

template <class T>
void add_values(std::size_t n, T* volume, const std::uint8_t* values, T factor) {
    parallel_pieces<std::size_t>(n, 1 << 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            volume[i] = static_cast<T>(volume[i] + factor * values[i]);
    });
}

}  // namespace

void costs_at(const BitsPair& p, const Window& win, const std::int16_t* u, const std::int16_t* v,
              double outside, double* out) {
    for_each_target(p.h, p.w, win, u, v, [&](std::size_t i, std::size_t to, bool inside) {
        int distance = 0;
        for (int k = 0; inside && k < p.words; ++k)
            distance += popcount(p.from(i)[k] ^ p.to(to)[k]);
        out[i] = inside ? 2 * distance - 64 * p.words : outside;
    });
}

void costs_at(const PhiPair& p, const Window& win, const std::int16_t* u, const std::int16_t* v,
              double outside, double* out) {
    for_each_target(p.h, p.w, win, u, v, [&](std::size_t i, std::size_t to, bool inside) {
        double sum = inside ? 0 : outside;
        for (int k = 0; inside && k < p.m; ++k)
            sum -= static_cast<double>(p.phi0[i * p.m + k]) * p.phi1[to * p.m + k];
        out[i] = sum;
    });
}

double energy_of(int h, int w, const float* right, const float* down, const double* rho,
                 int rho_count, const std::int16_t* u, const std::int16_t* v, const double* data) {
    const auto step = [&](std::size_t i, std::size_t j) {
        const auto of = [&](int a, int b) { return rho[std::min(std::abs(a - b), rho_count - 1)]; };
        return of(u[i], u[j]) + of(v[i], v[j]);
    };
    std::vector<double> rows(static_cast<std::size_t>(h));
    parallel_for(h, [&](int y) {
        const std::size_t begin = static_cast<std::size_t>(y) * w, end = begin + w;
        double costs = 0, edges = 0;
        for (std::size_t i = begin; i < end; ++i) {
            costs += data[i];
            if (i + 1 < end) edges += right[i] * step(i, i + 1);
            if (y + 1 < h) edges += down[i] * step(i, i + w);
        }
        rows[y] = costs + edges;
    });
    double sum = 0;
    for (const double row : rows) sum += row;  // in this order for any number of threads
    return sum;
}

void add_label_costs(int h, int w, int d, const std::uint8_t* costs, const std::int16_t* labels,
                     double* total) {
    parallel_for(h, [&](int y) {
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            // Checked before the call, but another thread of the caller's may write to the labels.
            total[i] += costs[i * d + std::clamp<int>(labels[i], 0, d - 1)];
        }
    });
}

void add_scaled(std::size_t n, std::int16_t* volume, const std::uint8_t* values,
                std::int16_t factor) {
    add_values(n, volume, values, factor);
}
void add_scaled(std::size_t n, float* volume, const std::uint8_t* values, float factor) {
    add_values(n, volume, values, factor);
}

void expected_costs(int h, int w, int d, const float* expected, const float* most, float slope,
                    float free, int first, std::uint8_t* out) {
    parallel_for(h, [&](int y) {
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            const float center = expected[i], limit = std::min(255.0f, std::max(0.0f, most[i]));
            std::uint8_t* to = out + i * d;
            // The cost is the limit, but for a few displacements around what is expected.
            std::memset(to, static_cast<int>(limit), static_cast<std::size_t>(d));
            const float reach = slope > 0 ? free + limit / slope + 1
                                          : std::numeric_limits<float>::infinity();
            const auto label = [&](float displacement) {
                const float k = displacement - static_cast<float>(first);
                return static_cast<int>(std::min(static_cast<float>(d), std::max(0.0f, k)));
            };
            for (int k = label(center - reach), end = label(center + reach + 1); k < end; ++k) {
                const float away = std::fabs(static_cast<float>(first + k) - center) - free;
                const float cost = std::min(limit, std::max(0.0f, away * slope));
                to[k] = static_cast<std::uint8_t>(static_cast<int>(cost));
            }
        }
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
