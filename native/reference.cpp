// Slow and obvious: what every kernel is tested against. One thread, no vectors, each value from
// its definition.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "kernels.hpp"
#include "simd/common.hpp"

namespace hamflow {
namespace {

bool inside(int x, int y, int h, int w) { return x >= 0 && x < w && y >= 0 && y < h; }

int popcount(std::uint64_t x) {
    int n = 0;
    for (; x; x &= x - 1) ++n;
    return n;
}

// Distance (or cost) of pixel (x, y) at labels (ku, kv).
int distance(const BitsPair& p, const Window& win, int outside, int x, int y, int ku, int kv) {
    const long long tx = x + static_cast<long long>(win.u0) + ku;
    const long long ty = y + static_cast<long long>(win.v0) + kv;
    if (tx < 0 || tx >= p.w || ty < 0 || ty >= p.h) return outside;
    return popcount(p.bits0[p.pixel(x, y)] ^
                    p.bits1[p.pixel(static_cast<int>(tx), static_cast<int>(ty))]);
}

double cost(const PhiPair& p, const Window& win, double outside, int x, int y, int ku, int kv) {
    const long long tx = x + static_cast<long long>(win.u0) + ku;
    const long long ty = y + static_cast<long long>(win.v0) + kv;
    if (tx < 0 || tx >= p.w || ty < 0 || ty >= p.h) return outside;
    const float* a = p.phi0 + (static_cast<std::size_t>(y) * p.w + x) * p.m;
    const float* b = p.phi1 + (static_cast<std::size_t>(ty) * p.w + tx) * p.m;
    double sum = 0;
    for (int k = 0; k < p.m; ++k) sum -= static_cast<double>(a[k]) * b[k];
    return sum;
}

template <class Body>
void for_each_pixel(int h, int w, const Body& body) {
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) body(x, y, static_cast<std::size_t>(y) * w + x);
}

// c^u(u) = min_v c(u, v), c^v(v) = min_u c(u, v) with the smallest minimising labels.
template <class T, class CostAt>
void project(int h, int w, const Window& win, T* cu, T* cv, std::int16_t* v_hat,
             std::int16_t* u_hat, const CostAt& cost_at) {
    for_each_pixel(h, w, [&](int x, int y, std::size_t i) {
        for (int ku = 0; ku < win.du; ++ku) {
            int best = 0;
            for (int kv = 1; kv < win.dv; ++kv)
                if (cost_at(x, y, ku, kv) < cost_at(x, y, ku, best)) best = kv;
            cu[i * win.du + ku] = static_cast<T>(cost_at(x, y, ku, best));
            if (v_hat) v_hat[i * win.du + ku] = static_cast<std::int16_t>(best);
        }
        for (int kv = 0; kv < win.dv; ++kv) {
            int best = 0;
            for (int ku = 1; ku < win.du; ++ku)
                if (cost_at(x, y, ku, kv) < cost_at(x, y, best, kv)) best = ku;
            cv[i * win.dv + kv] = static_cast<T>(cost_at(x, y, best, kv));
            if (u_hat) u_hat[i * win.dv + kv] = static_cast<std::int16_t>(best);
        }
    });
}

// out(k) = min over the sender's labels l of value(x, y, ku, kv, lam(l)).
template <class T, class Value>
void send(int h, int w, const Window& win, Direction to, const T* lam, T* out,
          const Value& value) {
    const bool to_u = to == Direction::to_u;
    const int receivers = to_u ? win.du : win.dv, senders = to_u ? win.dv : win.du;
    for_each_pixel(h, w, [&](int x, int y, std::size_t i) {
        for (int k = 0; k < receivers; ++k) {
            T best = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::max();
            for (int l = 0; l < senders; ++l)
                best = std::min<T>(best, value(x, y, to_u ? k : l, to_u ? l : k,
                                               lam[i * senders + l]));
            out[i * receivers + k] = best;
        }
    });
}

void min_projection(const BitsPair& p, const Window& win, std::uint8_t outside, std::uint8_t* cu,
                    std::uint8_t* cv, std::int16_t* v_hat, std::int16_t* u_hat) {
    project(p.h, p.w, win, cu, cv, v_hat, u_hat, [&](int x, int y, int ku, int kv) {
        return distance(p, win, outside, x, y, ku, kv);
    });
}

void message16(const BitsPair& p, const Window& win, Direction to, const FixedCost& c,
               const std::int16_t* lam, std::int16_t* out) {
    send(p.h, p.w, win, to, lam, out, [&](int x, int y, int ku, int kv, std::int16_t l) {
        // The saturating sums, in the order that messages.inl states.
        const int d = distance(p, win, -1, x, y, ku, kv);
        if (d < 0) return saturate16(-saturate16(l - c.outside));
        return saturate16(-saturate16(saturate16(l - c.base) - c.step * d));
    });
}

void message32(const BitsPair& p, const Window& win, Direction to, const FloatCost& c,
               const float* lam, float* out) {
    send(p.h, p.w, win, to, lam, out, [&](int x, int y, int ku, int kv, float l) {
        const int d = distance(p, win, -1, x, y, ku, kv);
        return static_cast<float>((d < 0 ? c.outside : double(c.step) * d + c.base) - l);
    });
}

void float_min_projection(const PhiPair& p, const Window& win, float outside, float* cu,
                          float* cv, std::int16_t* v_hat, std::int16_t* u_hat) {
    project(p.h, p.w, win, cu, cv, v_hat, u_hat, [&](int x, int y, int ku, int kv) {
        return cost(p, win, outside, x, y, ku, kv);
    });
}

void float_message(const PhiPair& p, const Window& win, Direction to, float outside,
                   const float* lam, float* out) {
    send(p.h, p.w, win, to, lam, out, [&](int x, int y, int ku, int kv, float l) {
        return static_cast<float>(cost(p, win, outside, x, y, ku, kv) - l);
    });
}

// body(pixel, target x, target y, volume index, is_u) for every label of both volumes.
template <class Body>
void for_each_match(const PhiPair& p, const Window& win, const std::int16_t* v_hat,
                    const std::int16_t* u_hat, const Body& body) {
    for_each_pixel(p.h, p.w, [&](int x, int y, std::size_t i) {
        for (int k = 0; k < win.du; ++k) {
            const int tx = x + win.u0 + k, ty = y + win.v0 + v_hat[i * win.du + k];
            body(i, tx, ty, i * win.du + k, true);
        }
        for (int k = 0; k < win.dv; ++k) {
            const int tx = x + win.u0 + u_hat[i * win.dv + k], ty = y + win.v0 + k;
            body(i, tx, ty, i * win.dv + k, false);
        }
    });
}

void gather(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_hat,
            const std::int16_t* u_hat, float* cu, float* cv) {
    for_each_match(p, win, v_hat, u_hat,
                   [&](std::size_t i, int tx, int ty, std::size_t at, bool is_u) {
        double sum = outside;
        if (inside(tx, ty, p.h, p.w)) {
            const std::size_t j = static_cast<std::size_t>(ty) * p.w + tx;
            sum = 0;
            for (int k = 0; k < p.m; ++k)
                sum -= static_cast<double>(p.phi0[i * p.m + k]) * p.phi1[j * p.m + k];
        }
        (is_u ? cu : cv)[at] = static_cast<float>(sum);
    });
}

void scatter(const PhiPair& p, const Window& win, const std::int16_t* v_hat,
             const std::int16_t* u_hat, const float* grad_cu, const float* grad_cv,
             float* grad_phi0, float* grad_phi1) {
    const std::size_t size = static_cast<std::size_t>(p.h) * p.w * p.m;
    std::vector<double> g0(size), g1(size);
    for_each_match(p, win, v_hat, u_hat,
                   [&](std::size_t i, int tx, int ty, std::size_t at, bool is_u) {
        if (!inside(tx, ty, p.h, p.w)) return;
        const std::size_t j = static_cast<std::size_t>(ty) * p.w + tx;
        const double g = (is_u ? grad_cu : grad_cv)[at];
        for (int k = 0; k < p.m; ++k) {
            g0[i * p.m + k] -= g * p.phi1[j * p.m + k];
            g1[j * p.m + k] -= g * p.phi0[i * p.m + k];
        }
    });
    std::copy(g0.begin(), g0.end(), grad_phi0);
    std::copy(g1.begin(), g1.end(), grad_phi1);
}

// Does displacement a win a tie against b?
bool nearer(int a, int b) {
    return std::abs(a) < std::abs(b) || (std::abs(a) == std::abs(b) && a < b);
}

template <class T>
void best_labels(const T* costs, std::size_t n, int count, int first, std::int16_t* labels) {
    for (std::size_t i = 0; i < n; ++i) {
        const T* c = costs + i * count;
        int best = 0;
        for (int k = 1; k < count; ++k)
            if (c[k] < c[best] || (c[k] == c[best] && nearer(first + k, first + best))) best = k;
        labels[i] = static_cast<std::int16_t>(best);
    }
}

template <class CostAt>
void rescan(int h, int w, const Window& win, const std::int16_t* v_labels, float* flow,
            const CostAt& cost_at) {
    for_each_pixel(h, w, [&](int x, int y, std::size_t i) {
        const int kv = v_labels[i];
        int best = 0;
        for (int k = 1; k < win.du; ++k) {
            const auto c = cost_at(x, y, k, kv), b = cost_at(x, y, best, kv);
            if (c < b || (c == b && nearer(win.u0 + k, win.u0 + best))) best = k;
        }
        flow[2 * i] = static_cast<float>(win.u0 + best);
        flow[2 * i + 1] = static_cast<float>(win.v0 + kv);
    });
}

void rescan_bits(const BitsPair& p, const Window& win, std::uint8_t outside,
                 const std::int16_t* v_labels, float* flow) {
    rescan(p.h, p.w, win, v_labels, flow, [&](int x, int y, int ku, int kv) {
        return distance(p, win, outside, x, y, ku, kv);
    });
}

void rescan_phi(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_labels,
                float* flow) {
    rescan(p.h, p.w, win, v_labels, flow, [&](int x, int y, int ku, int kv) {
        return cost(p, win, outside, x, y, ku, kv);
    });
}

}  // namespace

const Kernels reference_kernels = {
    "reference",   min_projection, message16,
    message32,     float_min_projection, float_message,
    gather,        scatter,        best_labels<std::uint8_t>,
    best_labels<float>, rescan_bits, rescan_phi,
    nullptr,
};

}  // namespace hamflow
