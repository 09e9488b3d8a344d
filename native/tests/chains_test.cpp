// The passes along chains of the joint model.
#include <algorithm>
#include <cstdio>
#include <type_traits>

#include "../threads.hpp"
#include "testing.hpp"

namespace hamflow::test {
namespace {

struct ChainCase {
    int h, w, d, reach;
    bool vertical, reverse, hierarchical, with_s;
    std::uint64_t seed;

    std::size_t size() const { return std::size_t(h) * w * d; }
    int length() const { return vertical ? h : w; }
    // Steps of the reference, which starts anew for every edge.
    double steps() const { return double(size()) * length() * d; }
    std::string name() const {
        char text[200];
        std::snprintf(text, sizeof text, "chains of %dx%dx%d, %s%s, %s, reach %d%s", h, w, d,
                      vertical ? "columns" : "rows", reverse ? " backwards" : "",
                      hierarchical ? "hierarchical" : "sequential", reach,
                      with_s ? "" : ", without s");
        return text;
    }
};

std::int64_t pass_chains(const Kernels& k, const ChainPass16& p) { return k.chain_pass16(p); }
double pass_chains(const Kernels& k, const ChainPass32& p) { return k.chain_pass32(p); }

std::uint16_t share_of(Random& r, std::uint16_t) {
    const int ends[] = {0, 1, 65535};
    return static_cast<std::uint16_t>(r.below(3) ? r.below(65536) : ends[r.below(3)]);
}
float share_of(Random& r, float) { return r.below(3) ? std::fabs(r.signed_unit()) : r.below(2); }

// Whole numbers in both types, so that everything is exact and equal byte for byte.
template <class Pass>
class ChainProblem {
    using T = std::remove_pointer_t<decltype(Pass::lam)>;
    using Share = typename Pass::Share;

   public:
    explicit ChainProblem(const ChainCase& c)
        : c_(c), edges_(std::size_t(c.h) * c.w), shares_(c.length()), lam_(c.size()),
          hold_(c.size()) {
        Random r{c.seed};
        // 2 C + 6 tau2 just fits 16 bits; or few distinct values; and floats may be larger.
        const bool tied = c.seed % 3 == 1;
        const int factor = std::is_same<T, float>::value ? 100 : 1;
        const int most = (tied ? 6 : 4864) * factor, cap = (tied ? 4 : 3800) * factor;
        const auto within = [&](int n) { return r.below(2 * n + 1) - n; };
        for (auto& e : edges_) {
            const int top = r.below(5) ? r.below(cap + 1) : cap * r.below(2);
            e = {static_cast<T>(r.below(top + 1)), static_cast<T>(r.below(top / 3 + 1)),
                 static_cast<T>(top)};
        }
        for (auto& share : shares_) share = share_of(r, Share());
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            const int shift = 2 * cap * (r.below(3) - 1);  // of all labels of a pixel
            for (std::size_t k = i * c.d; k < (i + 1) * c.d; ++k) {
                lam_[k] = static_cast<T>(shift + within(most));
                hold_[k] = static_cast<T>(within(cap));
            }
        }
    }

    struct Results {
        Output<T> lam, hold, s;
        double bound = 0;

        explicit Results(const ChainCase& c) : lam(c.size()), hold(c.size()), s(c.size()) {}
    };

    void run(const Kernels& k, Results& r) const {
        std::copy(lam_.begin(), lam_.end(), r.lam.data());
        std::copy(hold_.begin(), hold_.end(), r.hold.data());
        const Pass pass{c_.h,
                        c_.w,
                        c_.d,
                        c_.vertical,
                        c_.reverse,
                        c_.reach,
                        edges_.data(),
                        c_.hierarchical ? nullptr : shares_.data(),
                        r.lam.data(),
                        r.hold.data(),
                        c_.with_s ? r.s.data() : nullptr};
        r.bound = static_cast<double>(pass_chains(k, pass));
    }

    static void compare(const Results& got, const Results& want) {
        check_same(got.lam, want.lam, "lam");
        check_same(got.hold, want.hold, "hold");
        check_same(got.s, want.s, "s");
        check(got.bound == want.bound, "the chains' minima add up to " +
                                           std::to_string(got.bound) + ", not " +
                                           std::to_string(want.bound));
    }

    static void compare_threads(const Results& got, const Results& one, int threads) {
        check(got.lam.same_bytes(one.lam) && got.hold.same_bytes(one.hold) &&
                  got.s.same_bytes(one.s) && got.bound == one.bound,
              "chain_pass: differs with " + std::to_string(threads) + " threads");
    }

   private:
    ChainCase c_;
    std::vector<EdgeCost<T>> edges_;
    std::vector<Share> shares_;
    std::vector<T> lam_, hold_;
};

std::vector<ChainCase> make_chain_cases(bool quick) {
    struct Shape { int h, w; };
    const std::vector<Shape> few = {{1, 1}, {2, 2}, {7, 3}, {1, 9}, {5, 6}};
    const std::vector<Shape> many = {{1, 1}, {2, 2},  {1, 30}, {30, 1}, {7, 3},
                                     {5, 6}, {9, 13}, {17, 6}, {3, 40}, {60, 70}};
    const int labels[] = {1, 2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 129};
    const double limit = quick ? 1.1e6 : 6e6;  // of the reference's steps
    const int reaches[] = {1, 1, 2, 8, 64};
    std::vector<ChainCase> cases;
    Random r{1};
    for (const Shape& s : quick ? few : many) {
        for (int d : labels) {
            for (int flags = 0; flags < 16; ++flags) {
                const ChainCase c{s.h,
                                  s.w,
                                  d,
                                  reaches[r.below(5)],
                                  (flags & 1) != 0,
                                  (flags & 2) != 0,
                                  (flags & 4) != 0,
                                  (flags & 8) == 0,
                                  r.next()};
                const bool chosen = !quick || r.below(2) == 0;
                if (chosen && c.steps() <= limit) cases.push_back(c);
            }
        }
    }
    return cases;
}

template <class Pass>
void check_case(const ChainCase& c, const std::vector<const Kernels*>& levels,
                  const std::vector<int>& thread_counts) {
    using Problem = ChainProblem<Pass>;
    current_case = (sizeof(*Pass::lam) == 2 ? "int16 " : "float32 ") + c.name();
    const Problem problem(c);
    typename Problem::Results want(c);
    problem.run(reference_kernels, want);
    for (const Kernels* k : levels) {
        current_level = k->name;
        typename Problem::Results one(c);
        set_num_threads(1);
        problem.run(*k, one);
        Problem::compare(one, want);
        for (int threads : thread_counts) {
            typename Problem::Results many(c);
            set_num_threads(threads);
            problem.run(*k, many);
            Problem::compare_threads(many, one, threads);
        }
    }
}

}  // namespace

std::size_t check_chains(const std::vector<const Kernels*>& levels,
                         const std::vector<int>& thread_counts, bool quick) {
    const std::vector<ChainCase> cases = make_chain_cases(quick);
    for (const ChainCase& c : cases) {
        check_case<ChainPass16>(c, levels, thread_counts);
        check_case<ChainPass32>(c, levels, thread_counts);
    }
    return cases.size();
}

}  // namespace hamflow::test
