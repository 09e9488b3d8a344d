// How well candidate motions suit a pixel. For each candidate, 20 features are gathered: bits at its
// target, whether the way back from there ends here (visible) or elsewhere (hidden), how far the
// matches that support it are, how many of the matches around agree with it, how it compares with
// the interpolated and the matched flow. A small network turns them into a score.
#include "scoring.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "completion_kernels.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

class Scorer {
   public:
    explicit Scorer(const Scoring& p) : p_(p), n_(static_cast<std::size_t>(p.h) * p.w) {}

    void solve() {
        order();
        find_runs();
        pad_network();
        const CompletionKernels& kernels = completion_kernels();
        const std::size_t stride = number_.size();
        Buffer<std::uint32_t> targets(stride * p_.labels), support(stride * p_.labels), kept(stride);
        ScoringPlan plan{p_.h, p_.w, row_.data(), column_.data(), number_.data(), p_.pixel,
                         run_row_.data(), runs_.data(), stride, kept.data(), targets.data(),
                         support.data(), units_, network_.data()};
        parallel_for(p_.labels + 1, [&](int k) {
            if (k > 0)
                return kernels.describe_candidate(p_, plan, k - 1, &targets[stride * (k - 1)],
                                                  &support[stride * (k - 1)]);
            std::vector<std::uint8_t> mask(n_);
            for (std::size_t i = 0; i < n_; ++i) mask[i] = p_.kept[i] != 0;
            kernels.count_support(plan, mask.data(), kept.data());
        });
        parallel_pieces(p_.pixels, 512, [&](int begin, int end) {
            kernels.judge_candidates(p_, plan, begin, end);
        });
    }

   private:
    // The pixels that are asked for in the order of rows; the last one again and again to fill the
    // last vector.
    void order() {
        std::vector<int> first(n_ + 1, -1), next(static_cast<std::size_t>(p_.pixels));
        for (int k = p_.pixels - 1; k >= 0; --k) {
            next[k] = first[p_.pixel[k]];
            first[p_.pixel[k]] = k;
        }
        row_.assign(static_cast<std::size_t>(p_.h) + 1, 0);
        for (int y = 0; y < p_.h; ++y) {
            for (int x = 0; x < p_.w; ++x)
                for (int k = first[static_cast<std::size_t>(y) * p_.w + x]; k >= 0; k = next[k]) {
                    number_.push_back(k);
                    column_.push_back(x);
                }
            row_[y + 1] = static_cast<int>(number_.size());
        }
        while (!number_.empty() && number_.size() % 16) number_.push_back(number_.back());
    }

    // The pixels of each row that are near to one that is asked for.
    void find_runs() {
        run_row_.assign(1, 0);
        std::vector<std::uint8_t> wanted(static_cast<std::size_t>(p_.w));
        for (int y = 0; y < p_.h; ++y) {
            std::fill(wanted.begin(), wanted.end(), 0);
            const int above = std::max(y - near_radius, 0), below = std::min(y + near_radius + 1, p_.h);
            for (int k = row_[above]; k < row_[below]; ++k)
                std::fill(wanted.begin() + std::max(column_[k] - near_radius, 0),
                          wanted.begin() + std::min(column_[k] + near_radius + 1, p_.w), 1);
            for (int x = 0; x < p_.w; ++x) {
                if (!wanted[x]) continue;
                runs_.push_back(x);
                while (x < p_.w && wanted[x]) ++x;
                runs_.push_back(x);
            }
            run_row_.push_back(static_cast<int>(runs_.size() / 2));
        }
    }

    // With units that do nothing, to a multiple of four of them.
    void pad_network() {
        units_ = (p_.hidden + 3) / 4 * 4;
        const float* w = p_.network + 2 * score_features;
        const auto pad = [&](int rows) {
            for (int k = 0; k < rows; ++k, w += p_.hidden) {
                network_.insert(network_.end(), w, w + p_.hidden);
                network_.insert(network_.end(), static_cast<std::size_t>(units_ - p_.hidden), 0.0f);
            }
        };
        pad(score_features + 1);
        pad(p_.hidden + 1);
        const auto rows = static_cast<std::size_t>(units_ - p_.hidden);
        network_.insert(network_.end(), rows * static_cast<std::size_t>(units_), 0.0f);
        pad(1);
    }

    const Scoring& p_;
    std::size_t n_;
    std::vector<int> row_, column_, number_, run_row_, runs_;
    int units_ = 0;
    std::vector<float> network_;
};

}  // namespace

void score_candidates(const Scoring& problem) {
    if (problem.pixels > 0) Scorer(problem).solve();
}

}  // namespace hamflow
