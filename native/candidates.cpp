// Choice among candidate motions, jointly for all open pixels. The energy is the sum of the
// candidates' costs and, for neighbors, of the weighted difference of their flows, truncated.
// Min-sum belief propagation in sweeps over the rows and columns (in one sweep, each line is a
// chain of its own, so that the result does not depend on the number of threads).
#include "candidates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "completion_kernels.hpp"
#include "simd/common.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

class BeliefPropagation {
   public:
    explicit BeliefPropagation(const CandidateProblem& p)
        : p_(p), stride_((p.labels + 15) / 16 * 16), number_(static_cast<std::size_t>(p.h) * p.w, -1) {}

    void solve() {
        number_open();
        for_open([&](int k) { gather(k); });
        Beliefs state{p_.h, p_.w, p_.labels, stride_, p_.cap, number_.data(), p_.right, p_.down,
                      u_.data(), v_.data(), belief_.data(), {}};
        for (int side = 0; side < 4; ++side) state.message[side] = message_[side].data();
        const auto kernel = completion_kernels().sweep_strip;
        for (int round = 0; round < p_.rounds; ++round)
            for (const bool rows : {true, false}) {
                const int lines = rows ? p_.h : p_.w;
                parallel_pieces(lines, 8, [&](int begin, int end) {
                    kernel(state, rows, begin, end);
                });
            }
        for_open([&](int k) { p_.label[p_.pixel[k]] = best(k); });
    }

   private:
    template <class Body>
    void for_open(const Body& body) const {
        parallel_pieces(p_.pixels, 256, [&](int begin, int end) {
            for (int k = begin; k < end; ++k) body(k);
        });
    }

    void number_open() {
        for (int k = 0; k < p_.pixels; ++k) number_[p_.pixel[k]] = k;
        const std::size_t all = static_cast<std::size_t>(p_.pixels) * stride_;
        belief_ = Buffer<float>(all), u_ = Buffer<float>(all), v_ = Buffer<float>(all);
        for (auto& m : message_) m = Buffer<float>(all);
    }

    // The flows of an open pixel, and what those around it that are not open say.
    void gather(int k) {
        const int i = p_.pixel[k], x = i % p_.w, y = i / p_.w;
        const std::size_t to = static_cast<std::size_t>(k) * stride_;
        for (auto& m : message_) std::fill_n(&m[to], stride_, 0.0f);
        for (int l = 0; l < p_.labels; ++l) {
            u_[to + l] = motion(l, i)[0];
            v_[to + l] = motion(l, i)[1];
            belief_[to + l] = p_.unary[static_cast<std::size_t>(k) * p_.labels + l];
        }
        // Nothing is ever so bad that it would be the best.
        for (int l = p_.labels; l < stride_; ++l) belief_[to + l] = 1e30f, u_[to + l] = v_[to + l] = 0;
        const auto add = [&](int j, float weight) {
            if (number_[j] >= 0) return;
            const float* fixed = motion(0, j);
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
    }

    const float* motion(int l, int i) const {
        return p_.motion + 2 * (l * number_.size() + static_cast<std::size_t>(i));
    }

    int best(int k) const {
        const float* first = &belief_[static_cast<std::size_t>(k) * stride_];
        return static_cast<int>(std::min_element(first, first + p_.labels) - first);
    }

    const CandidateProblem& p_;
    int stride_;
    std::vector<int> number_;
    Buffer<float> belief_, u_, v_, message_[4];
};

}  // namespace

void choose_candidates(const CandidateProblem& problem) { BeliefPropagation(problem).solve(); }

}  // namespace hamflow
