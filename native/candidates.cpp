// Choice among candidate motions, jointly for all open pixels. The energy is the sum of the
// candidates' costs and, for neighbors, of the weighted difference of their flows, truncated.
// Min-sum belief propagation in sweeps over the rows and columns (in one sweep, each line is a
// chain of its own, so that the result does not depend on the number of threads).
#include "candidates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

class Chooser {
   public:
    explicit Chooser(const CandidateProblem& p)
        : p_(p), number_(static_cast<std::size_t>(p.h) * p.w, -1) {}

    void solve() {
        number_open();
        gather();
        for (int round = 0; round < p_.rounds; ++round) {
            parallel_for(p_.h, [&](int y) { sweep(y * p_.w, 1, p_.w, from_left, p_.right, 0); });
            parallel_for(p_.h, [&](int y) {
                sweep(y * p_.w + p_.w - 1, -1, p_.w, from_right, p_.right, -1);
            });
            parallel_for(p_.w, [&](int x) { sweep(x, p_.w, p_.h, from_above, p_.down, 0); });
            parallel_for(p_.w, [&](int x) {
                sweep(x + (p_.h - 1) * p_.w, -p_.w, p_.h, from_below, p_.down, -p_.w);
            });
        }
        for (int k = 0; k < p_.pixels; ++k) p_.label[p_.pixel[k]] = best(k);
    }

   private:
    enum Side { from_left, from_right, from_above, from_below, sides };

    void number_open() {
        for (int k = 0; k < p_.pixels; ++k) number_[p_.pixel[k]] = k;
        const std::size_t all = static_cast<std::size_t>(p_.pixels) * p_.labels;
        belief_.assign(p_.unary, p_.unary + all);
        u_.resize(all), v_.resize(all);
        for (auto& m : message_) m.assign(all, 0.0f);
    }

    // The flows of the open pixels, and what those around them that are not open say.
    void gather() {
        parallel_for(p_.pixels, [&](int k) {
            const int i = p_.pixel[k], x = i % p_.w, y = i / p_.w;
            const std::size_t to = static_cast<std::size_t>(k) * p_.labels;
            for (int l = 0; l < p_.labels; ++l) {
                u_[to + l] = motion(l, i)[0];
                v_[to + l] = motion(l, i)[1];
            }
            const auto add = [&](int j, float weight) {
                if (number_[j] >= 0) return;
                const float *fixed = motion(0, j);
                for (int l = 0; l < p_.labels; ++l) {
                    const float* m = motion(l, j);
                    const float apart = std::abs(m[0] - fixed[0]) + std::abs(m[1] - fixed[1]);
                    belief_[to + l] += weight * std::min(apart, p_.cap);
                }
            };
            if (x > 0) add(i - 1, p_.right[i - 1]);
            if (x + 1 < p_.w) add(i + 1, p_.right[i]);
            if (y > 0) add(i - p_.w, p_.down[i - p_.w]);
            if (y + 1 < p_.h) add(i + p_.w, p_.down[i]);
        });
    }

    const float* motion(int l, int i) const {
        return p_.motion + 2 * (l * number_.size() + static_cast<std::size_t>(i));
    }

    // One line from its start on: every open pixel tells the next one what it costs to follow it.
    // `belief` always includes all messages to the pixel.
    void sweep(int start, int step, int length, Side side, const float* weights, int offset) {
        std::vector<float> sent(static_cast<std::size_t>(p_.labels));
        const Side back = static_cast<Side>(side ^ 1);
        for (int k = 0; k + 1 < length; ++k) {
            const int i = start + k * step, j = i + step;
            if (number_[i] < 0 || number_[j] < 0) continue;
            const std::size_t a = static_cast<std::size_t>(number_[i]) * p_.labels;
            const std::size_t b = static_cast<std::size_t>(number_[j]) * p_.labels;
            send(a, b, weights[i + offset], &message_[back][a], sent.data());
            float* message = &message_[side][b];
            for (int l = 0; l < p_.labels; ++l) {
                belief_[b + l] += sent[l] - message[l];
                message[l] = sent[l];
            }
        }
    }

    void send(std::size_t a, std::size_t b, float weight, const float* returned,
              float* sent) const {
        const int n = p_.labels;
        const float cap = weight * p_.cap;
        float least = belief_[a] - returned[0];
        for (int l = 1; l < n; ++l) least = std::min(least, belief_[a + l] - returned[l]);
        for (int l = 0; l < n; ++l) sent[l] = cap;
        const float half = 0.5f * weight;
        for (int m = 0; m < n; ++m) {
            const float cost = belief_[a + m] - returned[m] - least;
            if (cost >= cap) continue;
            const float um = u_[a + m], vm = v_[a + m], un = u_[b + m], vn = v_[b + m];
            for (int l = 0; l < n; ++l) {
                const float apart = std::abs(u_[a + l] - um) + std::abs(v_[a + l] - vm) +
                                    std::abs(u_[b + l] - un) + std::abs(v_[b + l] - vn);
                sent[l] = std::min(sent[l], cost + half * apart);
            }
        }
    }

    int best(int k) const {
        const float* first = &belief_[static_cast<std::size_t>(k) * p_.labels];
        return static_cast<int>(std::min_element(first, first + p_.labels) - first);
    }

    const CandidateProblem& p_;
    std::vector<int> number_;  // of each open pixel, -1 for others
    std::vector<float> belief_, u_, v_;
    std::vector<float> message_[sides];
};

}  // namespace

void choose_candidates(const CandidateProblem& problem) { Chooser(problem).solve(); }

}  // namespace hamflow
