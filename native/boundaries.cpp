// Choice of motions beside motion boundaries. A pixel sees at most `most` different motions: those
// nearest to it, of which two differ by at least `same` pixels.
#include "boundaries.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"
#include "variational.hpp"

namespace hamflow {
namespace {

constexpr int channels = feature_channels;
constexpr int colors = 3;
constexpr int most = 6;
constexpr float same = 1.0f;

struct Motion {
    float u, v;
};

float distance(Motion a, Motion b) { return std::fabs(a.u - b.u) + std::fabs(a.v - b.v); }

constexpr std::size_t patch = 9;  // the offsets over which colors are compared

struct Weights {
    std::vector<float> agreement;  // of all neighbors, with the sum 1
    float data[patch];
};

struct Offset {
    int y, x;
    float nearness;  // weight by distance
};

// The neighborhood from the center outwards: all of 3 x 3 (always first), and every other pixel
// beyond.
std::vector<Offset> neighborhood(int radius, float deviation) {
    std::vector<Offset> offsets;
    for (int y = -radius; y <= radius; ++y)
        for (int x = -radius; x <= radius; ++x)
            if ((y % 2 == 0 && x % 2 == 0) || (std::abs(y) <= 1 && std::abs(x) <= 1))
                offsets.push_back({y, x, std::exp(-(y * y + x * x) / (2 * deviation * deviation))});
    std::stable_sort(offsets.begin(), offsets.end(), [](const Offset& a, const Offset& b) {
        return a.y * a.y + a.x * a.x < b.y * b.y + b.x * b.x;
    });
    return offsets;
}

class Chooser {
   public:
    explicit Chooser(const Boundaries& p)
        : p_(p), offsets_(neighborhood(p.radius, p.nearness)) {}

    void row(int y) const {
        Weights weights{std::vector<float>(offsets_.size()), {}};
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            const Motion motion = p_.band[i] ? best(y, x, weights) : flow(i);
            p_.chosen[2 * i] = motion.u;
            p_.chosen[2 * i + 1] = motion.v;
        }
    }

   private:
    std::size_t at(int y, int x) const { return static_cast<std::size_t>(y) * p_.w + x; }
    bool inside(int y, int x) const { return y >= 0 && x >= 0 && y < p_.h && x < p_.w; }
    Motion flow(std::size_t i) const { return {p_.flow[2 * i], p_.flow[2 * i + 1]}; }

    Motion best(int y, int x, Weights& weights) const {
        const std::size_t i = at(y, x);
        Motion motions[most];
        const int count = candidates(y, x, motions);
        if (count == 1) return motions[0];  // most of the band: nothing to choose
        weigh(y, x, weights);
        float least = disagreement(y, x, motions[0], weights) + data(y, x, motions[0], weights) -
                      (p_.trust[i] > 0 ? p_.margin : p_.untrusted_margin);
        int winner = 0;
        // Costs are not negative: often one of them is enough.
        for (int k = 1; k < count && least > 0; ++k) {
            float cost = data(y, x, motions[k], weights);
            if (cost < least) cost += disagreement(y, x, motions[k], weights);
            if (!(cost < least)) continue;
            least = cost;
            winner = k;
        }
        return motions[winner];
    }

    int candidates(int y, int x, Motion* motions) const {
        int count = 0;
        for (const Offset& o : offsets_) {
            if (!inside(y + o.y, x + o.x)) continue;
            const Motion motion = flow(at(y + o.y, x + o.x));
            const bool known = std::any_of(motions, motions + count, [&](const Motion& m) {
                return distance(m, motion) < same;
            });
            if (known) continue;
            motions[count++] = motion;
            if (count == most) break;
        }
        return count;
    }

    float similarity(std::size_t i, std::size_t j) const {
        float contrast = 0;
        for (int c = 0; c < colors; ++c)
            contrast += std::fabs(p_.guide[colors * i + c] - p_.guide[colors * j + c]);
        return std::exp(-p_.color / colors * contrast);
    }

    void weigh(int y, int x, Weights& weights) const {
        float total = 0;
        for (std::size_t n = 0; n < offsets_.size(); ++n) {
            const Offset& o = offsets_[n];
            const bool exists = inside(y + o.y, x + o.x);
            const std::size_t j = exists ? at(y + o.y, x + o.x) : 0;
            const float similar = exists ? similarity(at(y, x), j) : 0;
            if (n < patch) weights.data[n] = similar;
            weights.agreement[n] = similar * o.nearness * (p_.trust[j] > 0 ? 1 : p_.distrust);
            total += weights.agreement[n];
        }
        for (float& weight : weights.agreement) weight /= std::max(total, 1e-9f);
    }

    float disagreement(int y, int x, Motion motion, const Weights& weights) const {
        float sum = 0;
        for (std::size_t n = 0; n < offsets_.size(); ++n) {
            const Offset& o = offsets_[n];
            if (!inside(y + o.y, x + o.x)) continue;
            const float apart = distance(flow(at(y + o.y, x + o.x)), motion);
            sum += weights.agreement[n] * std::min(apart / p_.apart, 1.0f);
        }
        return p_.smoothness * sum;
    }

    float data(int y, int x, Motion motion, const Weights& weights) const {
        float sum = 0, total = 0;
        for (std::size_t n = 0; n < std::min(patch, offsets_.size()); ++n) {
            if (weights.data[n] == 0) continue;
            const Offset& o = offsets_[n];
            sum += weights.data[n] * difference(y + o.y, x + o.x, motion);
            total += weights.data[n];
        }
        return sum / total;
    }

    // Of one pixel to where a motion takes it, bilinear, from 0 to 1.
    float difference(int y, int x, Motion motion) const {
        const float tx = x + motion.u, ty = y + motion.v;
        if (!(tx >= 0 && ty >= 0 && tx <= p_.w - 1 && ty <= p_.h - 1)) return p_.outside;
        const int left = static_cast<int>(tx), top = static_cast<int>(ty);
        const int right = std::min(left + 1, p_.w - 1), bottom = std::min(top + 1, p_.h - 1);
        const float a = tx - left, b = ty - top;
        const float *tl = &p_.f1[at(top, left) * channels], *tr = &p_.f1[at(top, right) * channels];
        const float *bl = &p_.f1[at(bottom, left) * channels];
        const float *br = &p_.f1[at(bottom, right) * channels];
        const float* here = &p_.f0[at(y, x) * channels];
        float sum = 0;
        for (int c = 0; c < colors; ++c) {
            const float there = (1 - b) * ((1 - a) * tl[c] + a * tr[c]) +
                                b * ((1 - a) * bl[c] + a * br[c]);
            sum += std::fabs(there - here[c]);
        }
        return std::min(sum / (colors * p_.difference), 1.0f);
    }

    const Boundaries& p_;
    std::vector<Offset> offsets_;
};

}  // namespace

void choose_motions(const Boundaries& problem) {
    const Chooser chooser(problem);
    parallel_for(problem.h, [&](int y) { chooser.row(y); });
}

}  // namespace hamflow
