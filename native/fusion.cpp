// Two labelings fused to one: see relabel.hpp.
#include <algorithm>
#include <vector>

#include "relabel.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

// One row or column: for each pixel the choice of one of two labelings that together are best.
class FusedChain {
   public:
    FusedChain(const Fusion& f, bool rows)
        : f_(f), rows_(rows), n_(rows ? f.w : f.h), step_(rows ? 1 : f.w),
          from_(static_cast<std::size_t>(n_)) {}

    void solve(int line) {
        // Where the labelings agree there is nothing to choose, and the chain falls into parts.
        const std::ptrdiff_t start = rows_ ? static_cast<std::ptrdiff_t>(line) * f_.w : line;
        for (int i = 0; i < n_; ++i) {
            if (agree(start + i * step_)) continue;
            int end = i + 1;
            while (end < n_ && !agree(start + end * step_)) ++end;
            choose(line, start, std::max(0, i - 1), std::min(n_, end + 1));
            i = end;
        }
    }

   private:
    bool agree(std::ptrdiff_t at) const {
        return f_.u[at] == f_.other_u[at] && f_.v[at] == f_.other_v[at];
    }
    // The best choice for the nodes [begin, end).
    void choose(int line, std::ptrdiff_t start, int begin, int end) {
        double cost[2] = {0, 0};
        for (int i = begin; i < end; ++i) {
            const std::ptrdiff_t at = start + i * step_;
            double unary[2], best[2] = {0, 0};
            for (int b = 0; b < 2; ++b) unary[b] = unary_of(at, line, b);
            if (i > begin) {
                const double weight = (rows_ ? f_.right : f_.down)[at - step_];
                for (int b = 0; b < 2; ++b) {
                    const double stay = cost[0] + weight * rho(at - step_, 0, at, b);
                    const double change = cost[1] + weight * rho(at - step_, 1, at, b);
                    from_[i].choice[b] = change < stay;  // a tie goes to the first labeling
                    best[b] = std::min(stay, change);
                }
            }
            for (int b = 0; b < 2; ++b) cost[b] = best[b] + unary[b];
        }
        int choice = cost[1] < cost[0];
        for (int i = end - 1; i >= begin; --i) {
            const std::ptrdiff_t at = start + i * step_;
            const int before = i > begin ? from_[i].choice[choice] : 0;
            if (choice) {
                f_.u[at] = f_.other_u[at];
                f_.v[at] = f_.other_v[at];
                f_.data[at] = f_.other_data[at];
            }
            choice = before;
        }
    }

    struct From {
        bool choice[2];
    };
    int u(std::ptrdiff_t at, int b) const { return b ? f_.other_u[at] : f_.u[at]; }
    int v(std::ptrdiff_t at, int b) const { return b ? f_.other_v[at] : f_.v[at]; }
    double rho(std::ptrdiff_t at, int a, std::ptrdiff_t to, int b) const {
        const auto distance = [&](int x, int y) {
            return f_.rho[std::min(x < y ? y - x : x - y, f_.rho_count - 1)];
        };
        return distance(u(at, a), u(to, b)) + distance(v(at, a), v(to, b));
    }
    // The data cost, and the edges to the lines on either side, which keep their labels.
    double unary_of(std::ptrdiff_t at, int line, int b) const {
        double cost = b ? f_.other_data[at] : f_.data[at];
        const float* weights = rows_ ? f_.down : f_.right;
        const std::ptrdiff_t across = rows_ ? f_.w : 1;
        if (line > 0) cost += weights[at - across] * rho(at - across, 0, at, b);
        if (line + 1 < (rows_ ? f_.h : f_.w)) cost += weights[at] * rho(at + across, 0, at, b);
        return cost;
    }

    const Fusion& f_;
    bool rows_;
    int n_;
    std::ptrdiff_t step_;
    std::vector<From> from_;
};

}  // namespace

void fuse(const Fusion& f, Blocks blocks) {
    const bool rows = blocks == Blocks::rows;
    const int lines = rows ? f.h : f.w;
    for (int parity = 0; parity < 2; ++parity)
        parallel_for((lines + 1 - parity) / 2, [&](int index) {
            FusedChain(f, rows).solve(2 * index + parity);
        });
}

}  // namespace hamflow
