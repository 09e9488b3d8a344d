// Homographies that many matches agree on, one after the other (sequential RANSAC with local
// optimization). A start is a window of random place and one of three sizes: a homography is fitted
// to the matches in it that roughly follow the affine motion in its middle. The start that most of
// the matches left agree with is fitted again to all of these, which are then taken away.
#include "planes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

constexpr double sizes[] = {20, 50, 120};  // half the side of a window, in pixels
constexpr std::size_t window_sample = 200, plane_sample = 2000, window_least = 12;
constexpr int growths = 3;

struct Homography {
    double m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

    // Near the horizon, and beyond it, motion is bounded.
    void at(double x, double y, double& u, double& v) const {
        const double d = std::max(m[6] * x + m[7] * y + m[8], 0.1);
        u = (m[0] * x + m[1] * y + m[2]) / d - x;
        v = (m[3] * x + m[4] * y + m[5]) / d - y;
    }
};

// The same numbers on every machine and for any number of threads.
std::uint64_t random_of(std::uint64_t k) {
    k = (k + 1) * 0x9e3779b97f4a7c15u;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
    return k ^ (k >> 31);
}

// Symmetric positive definite, 8 x 8, in place; b becomes the solution. False if it is singular.
bool solve_cholesky(double a[8][8], double b[8]) {
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j <= i; ++j) {
            double sum = a[i][j];
            for (int k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
            if (i != j) {
                a[i][j] = sum / a[j][j];
            } else {
                if (!(sum > 0)) return false;
                a[i][i] = std::sqrt(sum);
            }
        }
    }
    for (int i = 0; i < 8; ++i) {
        for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = 7; i >= 0; --i) {
        for (int k = i + 1; k < 8; ++k) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    return true;
}

class PlaneFinder {
   public:
    explicit PlaneFinder(const PlaneSearch& p) : p_(p), free_(static_cast<std::size_t>(p.seeds)) {
        for (int s = 0; s < p.seeds; ++s) free_[s] = s;
        std::fill_n(p.plane, p.seeds, -1);
    }

    int find() {
        int found = 0;
        for (int k = 0; k < p_.count && free_.size() >= static_cast<std::size_t>(p_.least); ++k) {
            Homography h;
            if (best_start(k, h) < p_.least) break;
            for (int g = 0; g < growths; ++g) fit(agreeing(h, 1.5 * p_.tolerance, plane_sample), 3, h);
            const std::vector<int> own = agreeing(h, p_.tolerance, free_.size());
            const bool enough = own.size() >= static_cast<std::size_t>(p_.least);
            for (int s : own) p_.plane[s] = enough ? found : taken;
            if (enough) std::copy_n(h.m, 9, p_.planes + 9 * found++);
            free_.erase(std::remove_if(free_.begin(), free_.end(),
                                       [&](int s) { return p_.plane[s] != -1; }),
                        free_.end());
        }
        for (int s = 0; s < p_.seeds; ++s) p_.plane[s] = std::max(p_.plane[s], -1);
        return found;
    }

   private:
    static constexpr int taken = -2;

    double x(int s) const { return p_.place[2 * s]; }
    double y(int s) const { return p_.place[2 * s + 1]; }
    double u(int s) const { return p_.match[2 * s]; }
    double v(int s) const { return p_.match[2 * s + 1]; }

    // The start that most agree with, and how many, each counted by how well.
    double best_start(int k, Homography& best) const {
        std::vector<Homography> starts(static_cast<std::size_t>(p_.tries));
        std::vector<double> scores(starts.size(), -1.0);
        parallel_for(p_.tries, [&](int t) {
            const std::uint64_t n = static_cast<std::uint64_t>(k) * p_.tries + t;
            const int center = free_[random_of(n) % free_.size()];
            const std::vector<int> window = around(center, sizes[t % 3]);
            if (window.size() >= window_least && fit(window, 4, starts[t]))
                scores[t] = score(starts[t]);
        });
        const auto most = std::max_element(scores.begin(), scores.end());
        if (most == scores.end()) return -1;
        best = starts[most - scores.begin()];
        return *most;
    }

    std::vector<int> around(int center, double size) const {
        std::vector<int> window;
        const float* m = p_.models + 6 * static_cast<std::size_t>(center);
        const double apart = 2 * p_.tolerance + 0.02 * size;
        for (int s : free_) {
            if (std::abs(x(s) - x(center)) >= size || std::abs(y(s) - y(center)) >= size) continue;
            const double du = m[0] + m[1] * x(s) + m[2] * y(s) - u(s);
            const double dv = m[3] + m[4] * x(s) + m[5] * y(s) - v(s);
            if (du * du + dv * dv < apart * apart) window.push_back(s);
        }
        return sampled(window, window_sample);
    }

    static std::vector<int> sampled(const std::vector<int>& all, std::size_t most) {
        if (all.size() <= most) return all;
        std::vector<int> some(most);
        for (std::size_t k = 0; k < most; ++k) some[k] = all[k * all.size() / most];
        return some;
    }

    double squared_residual(const Homography& h, int s) const {
        double hu, hv;
        h.at(x(s), y(s), hu, hv);
        return (hu - u(s)) * (hu - u(s)) + (hv - v(s)) * (hv - v(s));
    }

    double score(const Homography& h) const {
        const double t2 = static_cast<double>(p_.tolerance) * p_.tolerance;
        double sum = 0;
        for (int s : free_) sum += std::max(0.0, 1 - squared_residual(h, s) / t2);
        return sum;
    }

    std::vector<int> agreeing(const Homography& h, double tolerance, std::size_t most) const {
        std::vector<int> own;
        for (int s : free_)
            if (squared_residual(h, s) < tolerance * tolerance) own.push_back(s);
        return sampled(own, most);
    }

    // Reweighted least squares (Geman-McClure) in coordinates of unit spread around the middle.
    bool fit(const std::vector<int>& points, int iterations, Homography& h) const {
        if (points.size() < window_least) return false;
        const double n = static_cast<double>(points.size());
        double mx = 0, my = 0, xx = 0, yy = 0;
        for (int s : points) mx += x(s) / n, my += y(s) / n;
        for (int s : points) {
            xx += (x(s) - mx) * (x(s) - mx) / n;
            yy += (y(s) - my) * (y(s) - my) / n;
        }
        const double size = std::max(std::sqrt(std::max(xx, yy)), 1e-3);
        double g[8] = {1, 0, 0, 0, 1, 0, 0, 0};
        std::vector<double> weight(points.size(), 1.0);
        for (int iteration = 0; iteration < iterations; ++iteration)
            if (!refit(points, mx, my, size, weight, g)) return false;
        // Back to pixels.
        const double p = 1 / size, a = -mx / size, b = -my / size;
        const double r[9] = {g[0] * p, g[1] * p, g[0] * a + g[1] * b + g[2],
                             g[3] * p, g[4] * p, g[3] * a + g[4] * b + g[5],
                             g[6] * p, g[7] * p, g[6] * a + g[7] * b + 1};
        for (int k = 0; k < 3; ++k) {
            h.m[k] = size * r[k] + mx * r[6 + k];
            h.m[3 + k] = size * r[3 + k] + my * r[6 + k];
            h.m[6 + k] = r[6 + k];
        }
        return true;
    }

    bool refit(const std::vector<int>& points, double mx, double my, double size,
               std::vector<double>& weight, double g[8]) const {
        double a[8][8] = {}, b[8] = {}, total = 0;
        const auto add = [&](const double* row, double value, double w) {
            for (int i = 0; i < 8; ++i) {
                if (row[i] == 0) continue;
                for (int j = 0; j <= i; ++j) a[i][j] += w * row[i] * row[j];
                b[i] += w * row[i] * value;
            }
        };
        for (std::size_t k = 0; k < points.size(); ++k) {
            const int s = points[k];
            const double X = (x(s) - mx) / size, Y = (y(s) - my) / size;
            const double U = (x(s) + u(s) - mx) / size, V = (y(s) + v(s) - my) / size;
            // The equations are multiplied by the denominator; the one before takes it back.
            const double d = std::max(std::abs(1 + g[6] * X + g[7] * Y), 0.1);
            const double first[8] = {X, Y, 1, 0, 0, 0, -U * X, -U * Y};
            const double second[8] = {0, 0, 0, X, Y, 1, -V * X, -V * Y};
            add(first, U, weight[k] / (d * d));
            add(second, V, weight[k] / (d * d));
            total += weight[k];
        }
        double trace = 0;
        for (int i = 0; i < 8; ++i) trace += a[i][i];
        for (int i = 0; i < 8; ++i) a[i][i] += 1e-9 * trace;
        // A little in favor of affine motion: small windows say nothing about perspective.
        a[6][6] += total / (size * size), a[7][7] += total / (size * size);
        if (!solve_cholesky(a, b)) return false;
        std::copy_n(b, 8, g);
        const double t2 = static_cast<double>(p_.tolerance) * p_.tolerance;
        for (std::size_t k = 0; k < points.size(); ++k) {
            const int s = points[k];
            const double X = (x(s) - mx) / size, Y = (y(s) - my) / size;
            const double d = 1 + g[6] * X + g[7] * Y;
            const double du = (g[0] * X + g[1] * Y + g[2]) / d * size + mx - x(s) - u(s);
            const double dv = (g[3] * X + g[4] * Y + g[5]) / d * size + my - y(s) - v(s);
            const double ratio = 1 + (du * du + dv * dv) / t2;
            weight[k] = ratio > 0 && ratio < 1e100 ? 1 / (ratio * ratio) : 0;
        }
        return true;
    }

    const PlaneSearch& p_;
    std::vector<int> free_;  // matches without a plane
};

}  // namespace

int find_planes(const PlaneSearch& search) { return PlaneFinder(search).find(); }

}  // namespace hamflow
