// Piecewise affine interpolation of matches. Every pixel belongs to the seed that is nearest along
// paths that avoid image edges (geodesic distance); every seed gets an affine model of the flow,
// fitted robustly to the seeds that are nearest to it in the same sense; neighbors offer each
// other their models, so that a wrong match ends up with the model of those around it.
#include "interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

using Entry = std::pair<float, int>;  // distance, and of what: ties go to the smaller number
using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>;

// flow(x, y) = (u + ux dx + uy dy, v + vx dx + vy dy) with (dx, dy) from the center.
struct Affine {
    float cx = 0, cy = 0;
    float u = 0, ux = 0, uy = 0;
    float v = 0, vx = 0, vy = 0;

    float u_at(float x, float y) const { return u + ux * (x - cx) + uy * (y - cy); }
    float v_at(float x, float y) const { return v + vx * (x - cx) + vy * (y - cy); }
};

struct Near {
    int seed;
    float weight;
};

class Interpolator {
   public:
    explicit Interpolator(const Interpolation& p)
        : p_(p), n_(static_cast<std::size_t>(p.h) * p.w), owner_(n_, -1),
          near_(static_cast<std::size_t>(p.seeds) * p.neighbors),
          count_(static_cast<std::size_t>(p.seeds)), models_(static_cast<std::size_t>(p.seeds)) {}

    void solve() {
        check_steps();
        find_owners();
        find_graph();
        parallel_for(blocks(), [&](int block) {
            std::vector<float> distance(static_cast<std::size_t>(p_.seeds), unreached);
            for_block(block, [&](int s) { find_near(s, distance); });
        });
        parallel_for(blocks(), [&](int block) {
            for_block(block, [&](int s) { models_[s] = fitted(s, start(s)); });
        });
        // A model that was refused once is refused for ever, as a seed's own only gets better: only
        // what has changed in the round before needs to be looked at.
        std::vector<Affine> next(models_.size());
        std::vector<unsigned char> changed(models_.size(), 1), changes(models_.size());
        for (int round = 0; round < p_.rounds; ++round) {
            parallel_for(blocks(), [&](int block) {
                for_block(block, [&](int s) {
                    next[s] = models_[s];
                    changes[s] = improve(s, changed, next[s]);
                });
            });
            models_.swap(next);
            changed.swap(changes);
        }
        parallel_for(p_.h, [&](int y) { paint_row(y); });
        if (p_.models != nullptr) write_models();
    }

   private:
    static constexpr float unreached = 3e38f;
    // A block needs a field of all seeds: not too many blocks.
    int block_seeds() const { return std::max(64, (p_.seeds + 255) / 256); }

    int blocks() const { return (p_.seeds + block_seeds() - 1) / block_seeds(); }
    template <class Body>
    void for_block(int block, const Body& body) const {
        const int end = std::min(p_.seeds, (block + 1) * block_seeds());
        for (int s = block * block_seeds(); s < end; ++s) body(s);
    }

    // Negative steps make paths without end; infinite ones and NaN, pixels without an owner.
    void check_steps() const {
        for (const float* steps : {p_.right, p_.down})
            if (!std::all_of(steps, steps + n_, [](float s) { return s >= 0 && s <= 1e20f; }))
                throw std::invalid_argument("right, down: steps from 0 to 1e20");
    }

    // Dijkstra from all seeds at once.
    void find_owners() {
        std::fill_n(p_.distance, n_, unreached);
        Queue queue;
        for (int s = 0; s < p_.seeds; ++s) {
            p_.distance[p_.pixel[s]] = 0;
            owner_[p_.pixel[s]] = s;
            queue.emplace(0.0f, p_.pixel[s]);
        }
        while (!queue.empty()) {
            const auto [distance, i] = queue.top();
            queue.pop();
            if (distance > p_.distance[i]) continue;
            const int x = i % p_.w, y = i / p_.w;
            const auto visit = [&](int j, float step) {
                const float there = distance + step;
                if (there < p_.distance[j]) {
                    p_.distance[j] = there;
                    owner_[j] = owner_[i];
                    queue.emplace(there, j);
                }
            };
            if (x > 0) visit(i - 1, p_.right[i - 1]);
            if (x + 1 < p_.w) visit(i + 1, p_.right[i]);
            if (y > 0) visit(i - p_.w, p_.down[i - p_.w]);
            if (y + 1 < p_.h) visit(i + p_.w, p_.down[i]);
        }
    }

    // Seeds whose regions touch, and how far they are from each other through that border.
    void find_graph() {
        std::vector<std::pair<std::pair<int, int>, float>> links;
        const auto link = [&](int i, int j, float step) {
            const int a = owner_[i], b = owner_[j];
            if (a == b) return;
            const float length = p_.distance[i] + step + p_.distance[j];
            links.push_back({{a, b}, length});
            links.push_back({{b, a}, length});
        };
        for (int y = 0; y < p_.h; ++y)
            for (int x = 0; x < p_.w; ++x) {
                const int i = y * p_.w + x;
                if (x + 1 < p_.w) link(i, i + 1, p_.right[i]);
                if (y + 1 < p_.h) link(i, i + p_.w, p_.down[i]);
            }
        std::sort(links.begin(), links.end());
        // Of the lengths between two seeds the shortest came first.
        links.erase(std::unique(links.begin(), links.end(),
                                [](const auto& a, const auto& b) { return a.first == b.first; }),
                    links.end());
        first_.assign(static_cast<std::size_t>(p_.seeds) + 1, 0);
        for (const auto& l : links) ++first_[l.first.first + 1];
        for (int s = 0; s < p_.seeds; ++s) first_[s + 1] += first_[s];
        to_.reserve(links.size());
        length_.reserve(links.size());
        for (const auto& l : links) {
            to_.push_back(l.first.second);
            length_.push_back(l.second);
        }
    }

    // Dijkstra on the graph until enough seeds are found. `distance` comes and goes unreached.
    void find_near(int seed, std::vector<float>& distance) {
        Near* near = &near_[static_cast<std::size_t>(seed) * p_.neighbors];
        std::vector<int> touched{seed};
        Queue queue;
        distance[seed] = 0;
        queue.emplace(0.0f, seed);
        int count = 0;
        while (!queue.empty() && count < p_.neighbors) {
            const auto [d, s] = queue.top();
            queue.pop();
            if (d > distance[s]) continue;
            near[count++] = {s, std::exp(-d / p_.reach) * p_.trust[s]};
            for (std::size_t k = first_[s]; k < first_[s + 1]; ++k) {
                const float there = d + length_[k];
                const int t = to_[k];
                if (there < distance[t]) {
                    if (distance[t] == unreached) touched.push_back(t);
                    distance[t] = there;
                    queue.emplace(there, t);
                }
            }
        }
        count_[seed] = count;
        for (int s : touched) distance[s] = unreached;
    }

    const Near* begin(int s) const { return &near_[static_cast<std::size_t>(s) * p_.neighbors]; }
    const Near* end(int s) const { return begin(s) + count_[s]; }

    Affine start(int s) const {
        Affine a;
        a.cx = p_.place[2 * s];
        a.cy = p_.place[2 * s + 1];
        a.u = p_.match[2 * s];
        a.v = p_.match[2 * s + 1];
        // A shift that many agree on: of the matches nearby the one with the smallest cost.
        float best = cost(s, a);
        const int tries = std::min(count_[s], 12);
        for (int k = 1; k < tries; ++k) {
            Affine b = a;
            b.u = p_.match[2 * begin(s)[k].seed];
            b.v = p_.match[2 * begin(s)[k].seed + 1];
            const float c = cost(s, b);
            if (c < best) best = c, a = b;
        }
        return a;
    }

    float squared_residual(const Affine& a, int s) const {
        const float x = p_.place[2 * s], y = p_.place[2 * s + 1];
        const float du = p_.match[2 * s] - a.u_at(x, y), dv = p_.match[2 * s + 1] - a.v_at(x, y);
        return du * du + dv * dv;
    }

    // Of a model for the neighborhood of a seed: truncated, as an outlier is an outlier.
    float cost(int seed, const Affine& a) const {
        const float t2 = p_.tolerance * p_.tolerance;
        float sum = 0;
        for (const Near* k = begin(seed); k != end(seed); ++k) {
            const float r2 = squared_residual(a, k->seed);
            sum += k->weight * (r2 < t2 ? r2 / t2 : 1.0f);
        }
        return sum;
    }

    // Reweighted least squares (Geman-McClure), from a model to a better one.
    Affine fitted(int seed, Affine a) const {
        for (int iteration = 0; iteration < 4; ++iteration) a = refitted(seed, a);
        return a;
    }

    Affine refitted(int seed, const Affine& before) const {
        const double t2 = static_cast<double>(p_.tolerance) * p_.tolerance;
        double w0 = 0, mx = 0, my = 0, mu = 0, mv = 0;
        const auto weight = [&](const Near& k) {
            const double ratio = 1 + squared_residual(before, k.seed) / t2;
            return k.weight / (ratio * ratio);
        };
        for (const Near* k = begin(seed); k != end(seed); ++k) {
            const double w = weight(*k);
            w0 += w;
            mx += w * p_.place[2 * k->seed];
            my += w * p_.place[2 * k->seed + 1];
            mu += w * p_.match[2 * k->seed];
            mv += w * p_.match[2 * k->seed + 1];
        }
        if (!(w0 > 1e-30)) return before;
        mx /= w0, my /= w0, mu /= w0, mv /= w0;
        double xx = 0, xy = 0, yy = 0, xu = 0, yu = 0, xv = 0, yv = 0;
        for (const Near* k = begin(seed); k != end(seed); ++k) {
            const double w = weight(*k);
            const double x = p_.place[2 * k->seed] - mx, y = p_.place[2 * k->seed + 1] - my;
            const double u = p_.match[2 * k->seed] - mu, v = p_.match[2 * k->seed + 1] - mv;
            xx += w * x * x, xy += w * x * y, yy += w * y * y;
            xu += w * x * u, yu += w * y * u, xv += w * x * v, yv += w * y * v;
        }
        // A little in favor of a plain shift: few or collinear seeds say nothing about slopes.
        const double ridge = w0 * flatness;
        xx += ridge, yy += ridge;
        const double determinant = xx * yy - xy * xy;
        Affine a;
        a.cx = static_cast<float>(mx), a.cy = static_cast<float>(my);
        a.u = static_cast<float>(mu), a.v = static_cast<float>(mv);
        a.ux = static_cast<float>((yy * xu - xy * yu) / determinant);
        a.uy = static_cast<float>((xx * yu - xy * xu) / determinant);
        a.vx = static_cast<float>((yy * xv - xy * yv) / determinant);
        a.vy = static_cast<float>((xx * yv - xy * xv) / determinant);
        return a;
    }

    // Replaces its own model by the one around that fits best here, fitted anew; whether it did.
    bool improve(int seed, const std::vector<unsigned char>& changed, Affine& own) const {
        bool better = false;
        float least = -1;  // what the model so far costs, once it is needed
        for (std::size_t k = first_[seed]; k < first_[seed + 1]; ++k) {
            if (!changed[to_[k]]) continue;
            if (least < 0) least = cost(seed, own);
            const Affine& other = models_[to_[k]];
            const float c = cost(seed, other);
            if (c < least) least = c, own = other, better = true;
        }
        if (better) {
            const Affine again = fitted(seed, own);
            if (cost(seed, again) < least) own = again;
        }
        return better;
    }

    void paint_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p_.w + x;
            const Affine& a = models_[owner_[i]];
            p_.flow[2 * i] = a.u_at(static_cast<float>(x), static_cast<float>(y));
            p_.flow[2 * i + 1] = a.v_at(static_cast<float>(x), static_cast<float>(y));
        }
    }

    void write_models() const {
        float* out = p_.models;
        for (const Affine& a : models_)
            for (float value : {a.u_at(0, 0), a.ux, a.uy, a.v_at(0, 0), a.vx, a.vy})
                *out++ = value;
    }

    static constexpr double flatness = 4.0;  // in square pixels
    const Interpolation& p_;
    std::size_t n_;
    std::vector<int> owner_;
    std::vector<std::size_t> first_;  // links of seed s: first_[s] .. first_[s + 1]
    std::vector<int> to_;
    std::vector<float> length_;
    std::vector<Near> near_;
    std::vector<int> count_;
    std::vector<Affine> models_;
};

}  // namespace

void interpolate(const Interpolation& problem) { Interpolator(problem).solve(); }

}  // namespace hamflow
