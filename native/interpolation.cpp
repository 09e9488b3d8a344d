// Piecewise affine interpolation of matches. Every pixel belongs to the seed that is nearest along
// paths that avoid image edges (geodesic distance). Seeds that are very near to each other form a
// group; every group gets an affine model of the flow, fitted robustly to the seeds that are nearest
// to its leader in the same sense; neighbors offer each other their models, so that a wrong match
// ends up with the model of those around it.
#include "interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "completion_kernels.hpp"
#include "seed_graph.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

class Interpolator {
   public:
    explicit Interpolator(const Interpolation& p)
        : p_(p), graph_(p), groups_(graph_, p, p.neighbors < few ? 0.0f : together * p.reach),
          near_(static_cast<std::size_t>(groups_.count()) * p.neighbors),
          count_(static_cast<std::size_t>(groups_.count())),
          models_(static_cast<std::size_t>(groups_.count())) {}

    void solve() {
        // A piece needs a field of all groups: not too many pieces.
        const int piece = std::max(32, (groups_.count() + 255) / 256);
        parallel_pieces(groups_.count(), piece, [&](int begin, int end) {
            SeedGroups::Scratch scratch(groups_.count());
            Gathered around(p_);
            for (int g = begin; g < end; ++g) {
                NearSeed* near = &near_[static_cast<std::size_t>(g) * p_.neighbors];
                count_[g] = groups_.nearest(g, p_.neighbors, scratch, near);
                // From here on they are known by how much they count.
                for (NearSeed* k = near; k != near + count_[g]; ++k)
                    k->distance = std::exp(-k->distance / p_.reach) * p_.trust[k->seed];
                const Neighborhood n = around.of(groups_.leader(g), near, count_[g]);
                models_[g] = kernels_.affine_fit(n, kernels_.affine_start(n));
            }
        });
        // A model that was refused once is refused for ever, as a group's own only gets better: only
        // what has changed in the round before needs to be looked at.
        std::vector<Affine> next(models_.size());
        std::vector<unsigned char> changed(models_.size(), 1), changes(models_.size());
        for (int round = 0; round < p_.rounds; ++round) {
            parallel_pieces(groups_.count(), piece, [&](int begin, int end) {
                Gathered around(p_);
                for (int g = begin; g < end; ++g) {
                    next[g] = models_[g];
                    changes[g] = improve(g, changed, around, next[g]);
                }
            });
            models_.swap(next);
            changed.swap(changes);
        }
        parallel_for(p_.h, [&](int y) { paint_row(y); });
        if (p_.models != nullptr) write_models();
    }

   private:
    // Length of a path, relative to the reach, up to which seeds share a model; unless models are
    // fitted to so few seeds that a group is a large part of them.
    static constexpr float together = 0.1f;
    static constexpr int few = 64;

    // The matches around a seed side by side.
    class Gathered {
       public:
        explicit Gathered(const Interpolation& p)
            : p_(p), stride_((p.neighbors + 15) / 16 * 16),
              data_(static_cast<std::size_t>(5 * stride_)) {}

        Neighborhood of(int seed, const NearSeed* near, int count) {
            const float cx = p_.place[2 * seed], cy = p_.place[2 * seed + 1];
            float *x = data_.data(), *y = x + stride_, *u = y + stride_, *v = u + stride_,
                  *weight = v + stride_;
            for (int k = 0; k < count; ++k) {
                const int s = near[k].seed;
                x[k] = p_.place[2 * s] - cx;
                y[k] = p_.place[2 * s + 1] - cy;
                u[k] = p_.match[2 * s];
                v[k] = p_.match[2 * s + 1];
                weight[k] = near[k].distance;
            }
            const int padded = (count + 15) / 16 * 16;
            for (float* field : {x, y, u, v, weight}) std::fill(field + count, field + padded, 0.0f);
            return {count, padded, cx, cy, x, y, u, v, weight, p_.tolerance};
        }

       private:
        const Interpolation& p_;
        int stride_;
        std::vector<float> data_;
    };

    // Replaces its own model by the one around that fits best here, fitted anew; whether it did.
    bool improve(int group, const std::vector<unsigned char>& changed, Gathered& around,
                 Affine& own) const {
        const SeedGroups::Link *k = groups_.begin(group), *end = groups_.end(group);
        while (k < end && !changed[k->group]) ++k;
        if (k == end) return false;
        const Neighborhood n =
            around.of(groups_.leader(group), &near_[static_cast<std::size_t>(group) * p_.neighbors],
                      count_[group]);
        bool better = false;
        float least = kernels_.affine_cost(n, own);
        for (; k < end; ++k) {
            if (!changed[k->group]) continue;
            const Affine& other = models_[k->group];
            const float c = kernels_.affine_cost(n, other);
            if (c < least) least = c, own = other, better = true;
        }
        if (better) {
            const Affine again = kernels_.affine_fit(n, own);
            if (kernels_.affine_cost(n, again) < least) own = again;
        }
        return better;
    }

    void paint_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p_.w + x;
            const Affine& a = models_[groups_.of(graph_.owner(i))];
            p_.flow[2 * i] = a.u_at(static_cast<float>(x), static_cast<float>(y));
            p_.flow[2 * i + 1] = a.v_at(static_cast<float>(x), static_cast<float>(y));
        }
    }

    void write_models() const {
        float* out = p_.models;
        for (int s = 0; s < p_.seeds; ++s) {
            const Affine& a = models_[groups_.of(s)];
            for (float value : {a.u_at(0, 0), a.ux, a.uy, a.v_at(0, 0), a.vx, a.vy})
                *out++ = value;
        }
    }

    const Interpolation& p_;
    const CompletionKernels& kernels_ = completion_kernels();
    SeedGraph graph_;
    SeedGroups groups_;
    std::vector<NearSeed> near_;
    std::vector<int> count_;
    std::vector<Affine> models_;
};

}  // namespace

void interpolate(const Interpolation& problem) { Interpolator(problem).solve(); }

}  // namespace hamflow
