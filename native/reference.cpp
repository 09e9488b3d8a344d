// The slow and obvious reference that every kernel is tested against: one thread, no vectors, each
// value from its definition in the paper.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "convolution.hpp"
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

// Eq. 1: distance (or cost) of pixel (x, y) at labels (ku, kv).
int distance(const BitsPair& p, const Window& win, int outside, int x, int y, int ku, int kv) {
    const long long tx = x + static_cast<long long>(win.u0) + ku;
    const long long ty = y + static_cast<long long>(win.v0) + kv;
    if (tx < 0 || tx >= p.w || ty < 0 || ty >= p.to_h) return outside;
    const std::size_t from = p.pixel(x, y);
    const std::size_t to = p.pixel(static_cast<int>(tx), static_cast<int>(ty));
    int sum = 0;
    for (int k = 0; k < p.words; ++k)
        sum += popcount(p.bits0[from * p.words + k] ^ p.bits1[to * p.words + k]);
    return sum;
}

double cost(const PhiPair& p, const Window& win, double outside, int x, int y, int ku, int kv) {
    const long long tx = x + static_cast<long long>(win.u0) + ku;
    const long long ty = y + static_cast<long long>(win.v0) + kv;
    if (tx < 0 || tx >= p.w || ty < 0 || ty >= p.to_h) return outside;
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

// Eq. 4: c^u(u) = min_v c(u, v), c^v(v) = min_u c(u, v) with the smallest minimizing labels.
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

// Eqs. 8 and 9, as assignments: out(k) = min over the sender's labels l of value(x, y, ku, kv,
// lam(l)).
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

// --- chains ---------------------------------------------------------------------------------

using Row = std::vector<long long>;  // whole numbers in both arithmetics

template <class T, class Share>
class Chain {
   public:
    Chain(const ChainPass<T, Share>& pass, int chain)
        : p_(pass), chain_(chain), n_(pass.vertical ? pass.h : pass.w) {
        for (int i = 0; i < n_; ++i) {
            Row row;
            for (int k = 0; k < p_.d; ++k)
                row.push_back(static_cast<long long>(p_.lam[at(i) + k]) -
                              static_cast<long long>(p_.hold[at(i) + k]));
            x_.push_back(row);
        }
    }

    long long minimum() const {
        Row b = x_[n_ - 1];
        for (int i = n_ - 2; i >= 0; --i) b = sum(x_[i], message(b, i));
        return least(b);
    }

    void write_minorant() {
        const std::vector<Row> x = x_;
        if (p_.shares) {
            for (int i = 0; i + 1 < n_; ++i) share_out(i, n_, i, p_.shares[i]);
        } else {
            split(0, n_);
        }
        for (int i = 0; i < n_; ++i) {
            for (int k = 0; k < p_.d; ++k) {
                const long long s = x_[i][k];
                p_.hold[at(i) + k] = static_cast<T>(x[i][k] - s);
                if (!p_.s) continue;
                p_.s[at(i) + k] = static_cast<T>(s);
                p_.lam[at(i) + k] -= static_cast<T>(s);
            }
        }
    }

   private:
    std::size_t pixel(int i) const {
        if (p_.reverse) i = n_ - 1 - i;
        return static_cast<std::size_t>(p_.vertical ? i : chain_) * p_.w +
               (p_.vertical ? chain_ : i);
    }
    std::size_t at(int i) const { return pixel(i) * p_.d; }

    static long long least(const Row& a) { return *std::min_element(a.begin(), a.end()); }
    static Row sum(Row a, const Row& b) {
        for (std::size_t k = 0; k < a.size(); ++k) a[k] += b[k];
        return a;
    }
    static Row times(Row a, long long factor, long long plus = 0) {
        for (long long& value : a) value = factor * value + plus;
        return a;
    }
    // min_x a[x] + w rho(x - k), with the edge from node i to i + 1.
    Row message(const Row& a, int i) const {
        const EdgeCost<T> e = p_.edges[p_.reverse ? pixel(i + 1) : pixel(i)];
        Row out;
        for (int k = 0; k < p_.d; ++k) {
            long long best = a[k];
            for (int x = 0; x < p_.d; ++x) {
                const int t = x < k ? k - x : x - k;
                const auto cap = static_cast<long long>(e.cap);
                long long rho = static_cast<long long>(e.first) +
                                static_cast<long long>(e.slope) * (t - 1);
                rho = t > p_.reach ? cap : std::min(rho, cap);
                if (t > 0) best = std::min(best, a[x] + rho);
            }
            out.push_back(best);
        }
        return out;
    }
    static long long part(long long value, std::uint16_t share) { return (value * share) >> 16; }
    static long long part(long long value, float share) {
        return static_cast<long long>(std::floor(static_cast<float>(value) * share));
    }

    // Within the part [begin, end) of the chain: node i keeps a share of what its edge to i + 1
    // decides, i + 1 gets the rest.
    void share_out(int begin, int end, int i, Share share) {
        Row f = x_[begin];
        for (int j = begin + 1; j <= i; ++j) f = sum(x_[j], message(f, j - 1));
        Row b = x_[end - 1];
        for (int j = end - 2; j > i; --j) b = sum(x_[j], message(b, j));
        const Row m1 = message(f, i);
        const Row total = sum(m1, b);
        Row kept = times(total, 1, -least(total));
        for (long long& value : kept) value = part(value, share);
        Row m = message(sum(kept, times(m1, -1)), i);
        m = times(m, 1, -least(m));
        x_[i] = sum(x_[i], m);
        x_[i + 1] = sum(x_[i + 1], message(times(m, -1), i));
    }
    void split(int begin, int end) {
        if (end - begin < 2) return;
        const int middle = begin + (end - begin) / 2;
        share_out(begin, end, middle - 1, share_of(middle - begin, end - begin, Share()));
        split(begin, middle);
        split(middle, end);
    }
    static std::uint16_t share_of(int part, int of, std::uint16_t) {
        return static_cast<std::uint16_t>((static_cast<std::int64_t>(part) << 16) / of);
    }
    static float share_of(int part, int of, float) {
        return static_cast<float>(part) / static_cast<float>(of);
    }

    const ChainPass<T, Share>& p_;
    int chain_, n_;
    std::vector<Row> x_;
};

template <class Sum, class T, class Share>
Sum chain_pass(const ChainPass<T, Share>& pass) {
    if (pass.fresh) std::fill_n(pass.hold, static_cast<std::size_t>(pass.h) * pass.w * pass.d, T(0));
    Sum sum = 0;
    for (int c = 0; c < (pass.vertical ? pass.w : pass.h); ++c) {
        Chain<T, Share> chain(pass, c);
        sum += static_cast<Sum>(chain.minimum());
        chain.write_minorant();
    }
    return sum;
}

// --- block moves ----------------------------------------------------------------------------

// In double precision, which holds the whole numbers of both arithmetics exactly.
template <class T, class Problem, class CostAt>
class BlockMove {
   public:
    BlockMove(const Problem& problem, const CostAt& cost_at)
        : p_(problem), cost_at_(cost_at), h_(problem.pair.h), w_(problem.pair.w),
          d_(problem.win.du) {}

    void run() {
        for (int parity = 0; parity < 2; ++parity) {
            for (int y = 0; y < h_; ++y) {
                for (int x = 0; x < w_; ++x) {
                    if (p_.blocks == Blocks::rows && x == 0 && y % 2 == parity) chain(x, y, 1, 0);
                    if (p_.blocks == Blocks::columns && y == 0 && x % 2 == parity)
                        chain(x, y, 0, 1);
                    if (p_.blocks == Blocks::pixels && (x + y) % 2 == parity) chain(x, y, w_, h_);
                }
            }
        }
    }

   private:
    std::int16_t& u(int x, int y) const { return p_.u[static_cast<std::size_t>(y) * w_ + x]; }
    double rho(const EdgeCost<T>& e, int a, int b) const {
        const int t = std::abs(a - b);
        if (t == 0) return 0;
        const double slope = e.first + static_cast<double>(e.slope) * (t - 1);
        return t > p_.edges.reach ? e.cap : std::min(slope, static_cast<double>(e.cap));
    }
    const EdgeCost<T>& right(int x, int y) const {
        return p_.edges.right[static_cast<std::size_t>(y) * w_ + x];
    }
    const EdgeCost<T>& down(int x, int y) const {
        return p_.edges.down[static_cast<std::size_t>(y) * w_ + x];
    }
    double unary(int x, int y, int k) const {
        const std::size_t i = static_cast<std::size_t>(y) * w_ + x;
        double sum = cost_at_(x, y, k, p_.v[i]) + (p_.unary ? p_.unit * p_.unary[i * d_ + k] : 0);
        if (p_.blocks != Blocks::rows) {
            if (x > 0) sum += rho(right(x - 1, y), k, u(x - 1, y));
            if (x + 1 < w_) sum += rho(right(x, y), k, u(x + 1, y));
        }
        if (p_.blocks != Blocks::columns) {
            if (y > 0) sum += rho(down(x, y - 1), k, u(x, y - 1));
            if (y + 1 < h_) sum += rho(down(x, y), k, u(x, y + 1));
        }
        return sum;
    }
    // All pixels from (x, y) on by steps of (dx, dy).
    void chain(int x, int y, int dx, int dy) const {
        std::vector<std::vector<double>> f;
        int n = 0;
        for (; x + n * dx < w_ && y + n * dy < h_; ++n) {
            const int xi = x + n * dx, yi = y + n * dy;
            std::vector<double> row;
            for (int k = 0; k < d_; ++k) {
                double best = n ? std::numeric_limits<double>::infinity() : 0;
                for (int from = 0; n && from < d_; ++from)
                    best = std::min(best, f[n - 1][from] + rho(edge(xi - dx, yi - dy), from, k));
                row.push_back(best + unary(xi, yi, k));
            }
            f.push_back(row);
        }
        int next = 0;
        for (int i = n - 1; i >= 0; --i) {
            const int xi = x + i * dx, yi = y + i * dy;
            std::vector<double> total = f[i];
            for (int k = 0; i + 1 < n && k < d_; ++k) total[k] += rho(edge(xi, yi), k, next);
            // A tie goes to the old label at the end of a chain, else to the successor's and those
            // within reach of it, the nearest and of these the smaller one first, and then to the
            // smallest displacement.
            const int favored = i + 1 < n ? next : u(xi, yi);
            int best = -1;
            for (int k = 0; k < d_; ++k)
                if (best < 0 || total[k] < total[best] ||
                    (total[k] == total[best] && before(k, best, favored, i + 1 < n)))
                    best = k;
            u(xi, yi) = static_cast<std::int16_t>(next = best);
        }
    }
    const EdgeCost<T>& edge(int x, int y) const {
        return p_.blocks == Blocks::rows ? right(x, y) : down(x, y);
    }
    bool before(int a, int b, int favored, bool reaching) const {
        const int reach = reaching ? p_.edges.reach : 0;
        const int ta = std::abs(a - favored), tb = std::abs(b - favored);
        if (ta <= reach || tb <= reach) return ta < tb || (ta == tb && a < b);
        return nearer(p_.win.u0 + a, p_.win.u0 + b);
    }

    const Problem& p_;
    const CostAt& cost_at_;
    int h_, w_, d_;
};

template <class T, class Problem, class CostAt>
void move_blocks(const Problem& problem, const CostAt& cost_at) {
    BlockMove<T, Problem, CostAt>(problem, cost_at).run();
}

template <class T, class Problem>
void relabel_bits(const Problem& p) {
    move_blocks<T>(p, [&](int x, int y, int ku, int kv) -> double {
        const int bits = distance(p.pair, p.win, -1, x, y, ku, kv);
        return bits < 0 ? p.cost.outside : p.cost.step * bits + p.cost.base;
    });
}
void relabel_bits16(const RelabelingBits16& p) { relabel_bits<std::int16_t>(p); }
void relabel_bits32(const RelabelingBits32& p) { relabel_bits<float>(p); }

void relabel_phi(const RelabelingPhi& p) {
    move_blocks<float>(p, [&](int x, int y, int ku, int kv) {
        return static_cast<double>(
            cost(p.pair, p.win, p.cost.outside / p.cost.scale, x, y, ku, kv) * p.cost.scale);
    });
}

// --- convolutions ---------------------------------------------------------------------------------

void pack_weights(const WeightPacking& p) {
    const std::size_t count = static_cast<std::size_t>(p.outputs) * p.words * (p.wide ? 2 : 4);
    std::memcpy(p.packed, p.weights, 2 * count);
}

int activation(const std::uint8_t* run, int k, bool wide) {
    if (!wide) return run[k];
    std::int16_t value;
    std::memcpy(&value, run + 2 * k, 2);
    return value;
}

// In whole numbers that cannot overflow.
int tanh127(int z) {
    const auto product = [](std::int64_t a, std::int64_t b) { return ((a * b >> 14) + 1) >> 1; };
    const std::int64_t square = product(z, z);
    std::int64_t sum = 0;
    for (const int c : tanh_coefficients) sum = product(sum, square) + c;
    return static_cast<int>(product(product(sum, z), 127 * 32));
}

void convolve_row(const ConvolutionRow& r) {
    const int length = r.run_words * (r.wide ? 2 : 4);
    for (int x = 0; x < r.pixels; ++x)
        for (int c = 0; c < r.outputs; ++c) {
            const std::size_t at = static_cast<std::size_t>(x) * r.outputs + c;
            const auto* w = reinterpret_cast<const std::int16_t*>(r.weights) +
                            static_cast<std::size_t>(c) * r.run_count * length;
            std::int64_t sum = r.first[c];
            for (int run = 0; run < r.run_count; ++run)
                for (int k = 0; k < length; ++k)
                    sum += activation(r.runs[run] + x * r.pitch, k, r.wide) * *w++;
            float y = static_cast<float>(sum) * r.scale[c];
            auto* bytes = static_cast<std::uint8_t*>(r.out);
            switch (r.finish) {
                case Finish::values: static_cast<float*>(r.out)[at] = y; break;
                case Finish::signs: {
                    std::uint32_t& word = static_cast<std::uint32_t*>(r.out)[at / output_group];
                    if (c % output_group == 0) word = 0;
                    word |= static_cast<std::uint32_t>(sum > 0) << c % output_group;
                    break;
                }
                case Finish::tanh:
                    y = std::min(std::max(y, -32767.0f), 32767.0f);
                    bytes[at] = static_cast<std::uint8_t>(
                        tanh127(static_cast<int>(std::lrint(y))) + 128);
                    break;
                case Finish::relu:
                    if (r.added) y += r.added[at];
                    y = std::max(y, 0.0f);
                    if (r.kept) r.kept[at] = y;
                    bytes[at] = static_cast<std::uint8_t>(
                        std::lrint(std::min(y * r.levels, 255.0f)));
            }
        }
}

}  // namespace

const Kernels reference_kernels = {
    "reference",   min_projection, message16,
    message32,     float_min_projection, float_message,
    gather,        scatter,        chain_pass<std::int64_t>,
    chain_pass<double>, relabel_bits16, relabel_bits32,
    relabel_phi,   best_labels<std::uint8_t>, best_labels<std::int16_t>,
    best_labels<float>, rescan_bits, rescan_phi,
};
const Convolutions reference_convolutions = {"reference", pack_weights, convolve_row};

}  // namespace hamflow
