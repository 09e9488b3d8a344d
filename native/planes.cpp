// Homographies that many matches agree on, one after the other (sequential RANSAC with local
// optimization). A start is a window of random place and one of three sizes: a homography is fitted
// to the matches in it that roughly follow the affine motion in its middle. The start that most of
// the matches left agree with is fitted again to all of these, which are then taken away.
#include "planes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "completion_kernels.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

constexpr float sizes[] = {20, 50, 120};  // half the side of a window, in pixels
constexpr std::size_t window_sample = 200, plane_sample = 2000, window_least = 12;
constexpr int growths = 3;

struct Homography {
    double m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
};

// The same numbers on every machine and for any number of threads.
std::uint64_t random_of(std::uint64_t k) {
    k = (k + 1) * 0x9e3779b97f4a7c15u;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
    return k ^ (k >> 31);
}

// A random number for each place.
std::uint64_t random_at(const float* place) {
    const auto whole = [](float x) { return static_cast<std::uint64_t>(std::lround(x)); };
    return random_of(random_of(whole(place[0])) + whole(place[1]));
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

// For single precision.
struct Single {
    explicit Single(const double* h) {
        for (int k = 0; k < 9; ++k) m[k] = static_cast<float>(h[k]);
    }
    float m[9];
};

class PlaneFinder {
   public:
    explicit PlaneFinder(const PlaneSearch& p) : p_(p), free_(static_cast<std::size_t>(p.seeds)) {
        ring_.reserve(free_.size());
        for (int s = 0; s < p.seeds; ++s) {
            free_[s] = s;
            ring_.emplace_back(random_at(p.place + 2 * s), s);
        }
        std::sort(ring_.begin(), ring_.end());
        std::fill_n(p.plane, p.seeds, -1);
    }

    int find() {
        int found = 0;
        for (int k = 0; k < p_.count && free_.size() >= static_cast<std::size_t>(p_.least); ++k) {
            arrange();
            Homography h;
            if (best_start(k, h) < static_cast<float>(p_.least)) break;
            std::vector<int> own(free_.size());
            for (int g = 0; g < growths; ++g) {
                own.resize(members(h, 1.5f * p_.tolerance, own));
                fit(own.data(), sample(own.data(), own.size(), plane_sample), 3, h);
                own.resize(free_.size());
            }
            own.resize(members(h, p_.tolerance, own));
            const bool enough = own.size() >= static_cast<std::size_t>(p_.least);
            for (int s : own) p_.plane[free_[s]] = enough ? found : taken;
            if (enough) std::copy_n(h.m, 9, p_.planes + 9 * found++);
            const auto used = [&](int s) { return p_.plane[s] != -1; };
            free_.erase(std::remove_if(free_.begin(), free_.end(), used), free_.end());
            ring_.erase(std::remove_if(ring_.begin(), ring_.end(),
                                       [&](const Place& place) { return used(place.second); }),
                        ring_.end());
        }
        for (int s = 0; s < p_.seeds; ++s) p_.plane[s] = std::max(p_.plane[s], -1);
        return found;
    }

   private:
    using Place = std::pair<std::uint64_t, int>;
    static constexpr int taken = -2;

    // The match left whose place has the next random number. If one match comes or goes, hardly any
    // start is another one: with the numbers of the matches left, all behind it would be.
    int center(std::uint64_t random) const {
        auto next = std::lower_bound(ring_.begin(), ring_.end(), Place{random, 0});
        return (next == ring_.end() ? ring_.begin() : next)->second;
    }

    // The matches left side by side.
    void arrange() {
        const std::size_t padded = (free_.size() + 15) / 16 * 16;
        x_.assign(padded, 1e9f), y_.assign(padded, 1e9f), u_.assign(padded, 1e9f);
        v_.assign(padded, 1e9f);
        for (std::size_t k = 0; k < free_.size(); ++k) {
            const std::size_t s = static_cast<std::size_t>(free_[k]);
            x_[k] = p_.place[2 * s], y_[k] = p_.place[2 * s + 1];
            u_[k] = p_.match[2 * s], v_[k] = p_.match[2 * s + 1];
        }
        matches_ = {static_cast<int>(padded), x_.data(), y_.data(), u_.data(), v_.data()};
    }

    // The start that most agree with, and how many, each counted by how well.
    float best_start(int k, Homography& best) const {
        std::vector<Homography> starts(static_cast<std::size_t>(p_.tries));
        std::vector<float> scores(starts.size(), -1.0f);
        parallel_pieces(p_.tries, 8, [&](int begin, int end) {
            std::vector<int> window(free_.size());
            for (int t = begin; t < end; ++t) {
                const std::uint64_t n = static_cast<std::uint64_t>(k) * p_.tries + t;
                const std::size_t s = static_cast<std::size_t>(center(random_of(n)));
                const float size = sizes[t % 3];
                const std::size_t count = static_cast<std::size_t>(kernels_.plane_window(
                    matches_, p_.place[2 * s], p_.place[2 * s + 1], size, p_.models + 6 * s,
                    2 * p_.tolerance + 0.02f * size, window.data()));
                if (fit(window.data(), sample(window.data(), count, window_sample), 4, starts[t]))
                    scores[t] = kernels_.plane_score(matches_, Single(starts[t].m).m, p_.tolerance);
            }
        });
        const auto most = std::max_element(scores.begin(), scores.end());
        if (most == scores.end()) return -1;
        best = starts[most - scores.begin()];
        return *most;
    }

    // Keeps some of many numbers; returns how many.
    static std::size_t sample(int* numbers, std::size_t count, std::size_t most) {
        if (count <= most) return count;
        for (std::size_t k = 0; k < most; ++k) numbers[k] = numbers[k * count / most];
        return most;
    }

    std::size_t members(const Homography& h, float tolerance, std::vector<int>& own) const {
        return static_cast<std::size_t>(
            kernels_.plane_members(matches_, Single(h.m).m, tolerance, own.data()));
    }

    // Reweighted least squares in coordinates of unit spread around the middle.
    bool fit(const int* numbers, std::size_t count, int iterations, Homography& h) const {
        if (count < window_least) return false;
        const double n = static_cast<double>(count);
        double mx = 0, my = 0, xx = 0, yy = 0;
        for (std::size_t k = 0; k < count; ++k) mx += x_[numbers[k]], my += y_[numbers[k]];
        mx /= n, my /= n;
        for (std::size_t k = 0; k < count; ++k) {
            const double x = x_[numbers[k]] - mx, y = y_[numbers[k]] - my;
            xx += x * x, yy += y * y;
        }
        const double size = std::max(std::sqrt(std::max(xx, yy) / n), 1e-3);
        const std::size_t padded = (count + 7) / 8 * 8;
        std::vector<double> fields(5 * padded, 0.0);
        double *x = fields.data(), *y = x + padded, *u = y + padded, *v = u + padded,
               *use = v + padded;
        for (std::size_t k = 0; k < count; ++k) {
            const int s = numbers[k];
            x[k] = (x_[s] - mx) / size, y[k] = (y_[s] - my) / size;
            u[k] = (x_[s] + static_cast<double>(u_[s]) - mx) / size;
            v[k] = (y_[s] + static_cast<double>(v_[s]) - my) / size;
            use[k] = 1;
        }
        const PlanePoints points{static_cast<int>(padded), size / p_.tolerance, x, y, u, v, use};
        double g[8] = {1, 0, 0, 0, 1, 0, 0, 0};
        for (int iteration = 0; iteration < iterations; ++iteration) {
            PlaneEquations e;
            kernels_.plane_equations(points, g, iteration > 0, e);
            double trace = 0;
            for (int i = 0; i < 8; ++i) trace += e.a[i][i];
            for (int i = 0; i < 8; ++i) e.a[i][i] += 1e-9 * trace;
            // A little in favor of affine motion: small windows say nothing about perspective.
            for (int i = 6; i < 8; ++i) e.a[i][i] += e.total / (size * size);
            if (!solve_cholesky(e.a, e.b)) return false;
            std::copy_n(e.b, 8, g);
        }
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

    const PlaneSearch& p_;
    const CompletionKernels& kernels_ = completion_kernels();
    std::vector<Place> ring_;  // matches without a plane, in the order of their random numbers
    std::vector<int> free_;    // matches without a plane, from here on known by their number in it
    std::vector<float> x_, y_, u_, v_;
    PlaneMatches matches_{};
};

}  // namespace

int find_planes(const PlaneSearch& search) { return PlaneFinder(search).find(); }

void plane_motions(const double* planes, int count, int h, int w, float* motion) {
    const auto kernel = completion_kernels().plane_motion;
    parallel_for(h, [&](int y) {
        for (int k = 0; k < count; ++k)
            kernel(Single(planes + 9 * k).m, y, w,
                   motion + 2 * (static_cast<std::size_t>(k) * h + y) * w);
    });
}

}  // namespace hamflow
