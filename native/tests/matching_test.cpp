// The kernels of matching: projections, messages, gathering and scattering, labels.
#include <cstdio>

#include "../threads.hpp"
#include "testing.hpp"

namespace hamflow::test {
namespace {

struct Case {
    int h, w, words, m;
    Window win;
    bool tied;  // few distinct values (and integers for floats, so that all sums are exact)
    int outside;
    std::uint64_t seed;

    std::size_t pixels() const { return std::size_t(h) * w; }
    long long entries() const { return static_cast<long long>(pixels()) * win.du * win.dv; }
    std::string name() const {
        char text[200];
        std::snprintf(text, sizeof text,
                      "%dx%dx%d, u0=%d du=%d v0=%d dv=%d, %s, outside=%d, m=%d", h, w, words,
                      win.u0, win.du, win.v0, win.dv, tied ? "tied" : "random", outside, m);
        return text;
    }
};

// The inputs of a case and what the reference makes of them.
class Problem {
   public:
    explicit Problem(const Case& c)
        : c_(c), n_(c.pixels()), bits0_(n_ * c.words), bits1_(n_ * c.words), phi0_(n_ * c.m), phi1_(n_ * c.m),
          lam16_u_(n_ * c.win.du), lam16_v_(n_ * c.win.dv), lam_u_(lam16_u_.size()),
          lam_v_(lam16_v_.size()), any_v_(lam16_u_.size()), any_u_(lam16_v_.size()),
          v_labels_(n_), grad_cu_(lam16_u_.size()), grad_cv_(lam16_v_.size()) {
        Random r{c.seed};
        const auto bits = [&] {
            // Few values that differ in few bits, or in all: many ties at small distances, and
            // the largest one there can be.
            const std::uint64_t x = r.next();
            return !c_.tied ? x : c_.seed % 2 ? x & 0x8000000100000010u : 0 - (x & 1);
        };
        const auto component = [&] {
            return c_.tied ? static_cast<float>(r.below(3) - 1) : r.signed_unit();
        };
        for (auto& b : bits0_) b = bits();
        for (auto& b : bits1_) b = bits();
        for (auto& x : phi0_) x = component();
        for (auto& x : phi1_) x = component();
        // Now and then a range in which the 16-bit sums saturate.
        const int range = c.seed % 5 == 0 ? 65535 : 3000;
        for (auto& x : lam16_u_) x = static_cast<std::int16_t>(r.below(range) - range / 2);
        for (auto& x : lam16_v_) x = static_cast<std::int16_t>(r.below(range) - range / 2);
        for (auto& x : lam_u_) x = 20 * component();
        for (auto& x : lam_v_) x = 20 * component();
        for (auto& x : any_v_) x = static_cast<std::int16_t>(r.below(c.win.dv));
        for (auto& x : any_u_) x = static_cast<std::int16_t>(r.below(c.win.du));
        for (auto& x : v_labels_) x = static_cast<std::int16_t>(r.below(c.win.dv));
        for (auto& x : grad_cu_) x = component();
        for (auto& x : grad_cv_) x = component();
        const int steps[] = {1, 7, 32, 128};
        fixed_ = {steps[r.below(4)], r.below(400) - 200, r.below(4000)};
        const float scales[] = {0.37f, 1.0f, 1.75f};
        float_ = {scales[r.below(3)], r.signed_unit(), 20 * r.signed_unit()};
    }

    struct Results {
        Output<std::uint8_t> cu, cv, cu_alone, cv_alone;
        Output<std::int16_t> v_hat, u_hat, message16_u, message16_v, best_u, best_v, best_fu;
        Output<float> message32_u, message32_v, fcu, fcv, fcu_alone, fcv_alone;
        Output<std::int16_t> fv_hat, fu_hat;
        Output<float> fmessage_u, fmessage_v, gather_u, gather_v, grad0, grad1, flow, fflow;

        explicit Results(const Case& c)
            : cu(c.pixels() * c.win.du), cv(c.pixels() * c.win.dv), cu_alone(cu.size()),
              cv_alone(cv.size()), v_hat(cu.size()), u_hat(cv.size()), message16_u(cu.size()),
              message16_v(cv.size()), best_u(c.pixels()), best_v(c.pixels()), best_fu(c.pixels()),
              message32_u(cu.size()), message32_v(cv.size()), fcu(cu.size()), fcv(cv.size()),
              fcu_alone(cu.size()), fcv_alone(cv.size()), fv_hat(cu.size()), fu_hat(cv.size()),
              fmessage_u(cu.size()), fmessage_v(cv.size()), gather_u(cu.size()),
              gather_v(cv.size()), grad0(c.pixels() * c.m), grad1(c.pixels() * c.m),
              flow(2 * c.pixels()), fflow(2 * c.pixels()) {}
    };

    // best_*: of the reference's costs, so that one failure does not cause others.
    void run(const Kernels& k, Results& r, const Results& costs) const {
        const BitsPair bits(bits0_.data(), bits1_.data(), c_.h, c_.w, c_.words);
        const PhiPair phi{phi0_.data(), phi1_.data(), c_.h, c_.w, c_.m};
        const Window& win = c_.win;
        const auto outside = static_cast<std::uint8_t>(c_.outside);
        const float foutside = static_cast<float>(c_.outside) / 8;
        k.min_projection(bits, win, outside, r.cu.data(), r.cv.data(), r.v_hat.data(),
                         r.u_hat.data());
        k.min_projection(bits, win, outside, r.cu_alone.data(), r.cv_alone.data(), nullptr,
                         nullptr);
        k.message16(bits, win, Direction::to_u, fixed_, lam16_v_.data(), r.message16_u.data());
        k.message16(bits, win, Direction::to_v, fixed_, lam16_u_.data(), r.message16_v.data());
        k.message32(bits, win, Direction::to_u, float_, lam_v_.data(), r.message32_u.data());
        k.message32(bits, win, Direction::to_v, float_, lam_u_.data(), r.message32_v.data());
        k.float_min_projection(phi, win, foutside, r.fcu.data(), r.fcv.data(), r.fv_hat.data(),
                               r.fu_hat.data());
        k.float_min_projection(phi, win, foutside, r.fcu_alone.data(), r.fcv_alone.data(), nullptr,
                               nullptr);
        k.float_message(phi, win, Direction::to_u, foutside, lam_v_.data(), r.fmessage_u.data());
        k.float_message(phi, win, Direction::to_v, foutside, lam_u_.data(), r.fmessage_v.data());
        k.gather(phi, win, foutside, any_v_.data(), any_u_.data(), r.gather_u.data(),
                 r.gather_v.data());
        k.scatter(phi, win, any_v_.data(), any_u_.data(), grad_cu_.data(), grad_cv_.data(),
                  r.grad0.data(), r.grad1.data());
        k.best_labels_u8(&costs.cu[0], n_, win.du, win.u0, r.best_u.data());
        k.best_labels_u8(&costs.cv[0], n_, win.dv, win.v0, r.best_v.data());
        k.best_labels_f32(&costs.fcu[0], n_, win.du, win.u0, r.best_fu.data());
        k.rescan_bits(bits, win, outside, v_labels_.data(), r.flow.data());
        k.rescan_phi(phi, win, foutside, v_labels_.data(), r.fflow.data());
    }

    void compare(const Results& got, const Results& want) const {
        check_same(got.cu, want.cu, "cu");
        check_same(got.cv, want.cv, "cv");
        check_same(got.v_hat, want.v_hat, "v_hat");
        check_same(got.u_hat, want.u_hat, "u_hat");
        check_same(got.cu_alone, want.cu, "cu without argmins");
        check_same(got.cv_alone, want.cv, "cv without argmins");
        check_same(got.message16_u, want.message16_u, "message16 to u");
        check_same(got.message16_v, want.message16_v, "message16 to v");
        check_near(got.message32_u, want.message32_u, "message32 to u");
        check_near(got.message32_v, want.message32_v, "message32 to v");
        check_near(got.fcu, want.fcu, "float cu");
        check_near(got.fcv, want.fcv, "float cv");
        check_near(got.fcu_alone, want.fcu, "float cu without argmins");
        check_near(got.fcv_alone, want.fcv, "float cv without argmins");
        check_near(got.fmessage_u, want.fmessage_u, "float message to u");
        check_near(got.fmessage_v, want.fmessage_v, "float message to v");
        check_near(got.gather_u, want.gather_u, "gather cu");
        check_near(got.gather_v, want.gather_v, "gather cv");
        check_near(got.grad0, want.grad0, "scatter phi0");
        check_near(got.grad1, want.grad1, "scatter phi1");
        check_same(got.best_u, want.best_u, "best_labels u8 of cu");
        check_same(got.best_v, want.best_v, "best_labels u8 of cv");
        check_same(got.best_fu, want.best_fu, "best_labels f32");
        check_same(got.flow, want.flow, "rescan_bits");
        if (c_.tied) {
            check_same(got.fv_hat, want.fv_hat, "float v_hat");
            check_same(got.fu_hat, want.fu_hat, "float u_hat");
            check_same(got.fflow, want.fflow, "rescan_phi");
        } else {
            check_float_argmins(got, want);
            check_float_flow(got, want);
        }
    }

    static void compare_threads(const Results& got, const Results& one, int threads) {
        const std::string what = ": differs with " + std::to_string(threads) + " threads";
        check(got.cu.same_bytes(one.cu) && got.cv.same_bytes(one.cv) &&
                  got.v_hat.same_bytes(one.v_hat) && got.u_hat.same_bytes(one.u_hat) &&
                  got.cu_alone.same_bytes(one.cu_alone) && got.cv_alone.same_bytes(one.cv_alone),
              "min_projection" + what);
        check(got.message16_u.same_bytes(one.message16_u) &&
                  got.message16_v.same_bytes(one.message16_v),
              "message16" + what);
        check(got.message32_u.same_bytes(one.message32_u) &&
                  got.message32_v.same_bytes(one.message32_v),
              "message32" + what);
        check(got.fcu.same_bytes(one.fcu) && got.fcv.same_bytes(one.fcv) &&
                  got.fv_hat.same_bytes(one.fv_hat) && got.fu_hat.same_bytes(one.fu_hat) &&
                  got.fcu_alone.same_bytes(one.fcu_alone) &&
                  got.fcv_alone.same_bytes(one.fcv_alone),
              "float_min_projection" + what);
        check(got.fmessage_u.same_bytes(one.fmessage_u) &&
                  got.fmessage_v.same_bytes(one.fmessage_v),
              "float_message" + what);
        check(got.gather_u.same_bytes(one.gather_u) && got.gather_v.same_bytes(one.gather_v),
              "gather" + what);
        check(got.grad0.same_bytes(one.grad0) && got.grad1.same_bytes(one.grad1),
              "scatter" + what);
        check(got.best_u.same_bytes(one.best_u) && got.best_v.same_bytes(one.best_v) &&
                  got.best_fu.same_bytes(one.best_fu),
              "best_labels" + what);
        check(got.flow.same_bytes(one.flow) && got.fflow.same_bytes(one.fflow), "rescan" + what);
    }

   private:
    double float_cost(std::size_t pixel, int ku, int kv) const {
        const long long x = static_cast<long long>(pixel % c_.w) + c_.win.u0 + ku;
        const long long y = static_cast<long long>(pixel / c_.w) + c_.win.v0 + kv;
        if (x < 0 || x >= c_.w || y < 0 || y >= c_.h) return c_.outside / 8.0;
        double sum = 0;
        for (int k = 0; k < c_.m; ++k)
            sum -= double(phi0_[pixel * c_.m + k]) * phi1_[(y * c_.w + x) * c_.m + k];
        return sum;
    }

    // Rounding decides which of two nearly equal costs wins; the cost must be the best anyway.
    void check_float_argmins(const Results& got, const Results& want) const {
        const Window& win = c_.win;
        bool ok_u = true, ok_v = true;
        for (std::size_t i = 0; i < n_; ++i) {
            for (int k = 0; k < win.du; ++k) {
                const std::size_t j = i * win.du + k;
                const int v = got.fv_hat[j];
                ok_u &= v >= 0 && v < win.dv && near(float_cost(i, k, v), want.fcu[j]);
            }
            for (int k = 0; k < win.dv; ++k) {
                const std::size_t j = i * win.dv + k;
                const int u = got.fu_hat[j];
                ok_v &= u >= 0 && u < win.du && near(float_cost(i, u, k), want.fcv[j]);
            }
        }
        check(ok_u && got.fv_hat.guards_intact(), "float v_hat");
        check(ok_v && got.fu_hat.guards_intact(), "float u_hat");
    }

    void check_float_flow(const Results& got, const Results& want) const {
        bool ok = got.fflow.guards_intact();
        for (std::size_t i = 0; i < n_; ++i) {
            const int ku = static_cast<int>(got.fflow[2 * i]) - c_.win.u0;
            const int best = static_cast<int>(want.fflow[2 * i]) - c_.win.u0;
            ok &= got.fflow[2 * i + 1] == want.fflow[2 * i + 1] && ku >= 0 && ku < c_.win.du &&
                  near(float_cost(i, ku, v_labels_[i]), float_cost(i, best, v_labels_[i]));
        }
        check(ok, "rescan_phi");
    }

    Case c_;
    std::size_t n_;
    std::vector<std::uint64_t> bits0_, bits1_;
    std::vector<float> phi0_, phi1_;
    std::vector<std::int16_t> lam16_u_, lam16_v_;
    std::vector<float> lam_u_, lam_v_;
    std::vector<std::int16_t> any_v_, any_u_, v_labels_;
    std::vector<float> grad_cu_, grad_cv_;
    FixedCost fixed_;
    FloatCost float_;
};

std::vector<Case> make_cases(bool quick) {
    struct Shape { int h, w; };
    const std::vector<Shape> few = {{1, 1}, {5, 3}, {1, 37}, {3, 33}, {2, 70}};
    const std::vector<Shape> many = {
        {1, 1},  {1, 37}, {37, 1}, {3, 500}, {2, 15}, {9, 16}, {8, 17},  {2, 31},  {5, 32},
        {4, 33}, {3, 63}, {6, 64}, {7, 65},  {2, 95}, {2, 97}, {2, 129}, {19, 47},
    };
    const long long limit = quick ? 12000 : 700000;  // of entries
    std::vector<Case> cases;
    std::uint64_t seed = 1;
    for (const Shape& s : quick ? few : many) {
        const Window windows[] = {
            {0, 1, 0, 1},
            {-4, 9, -4, 9},
            {-16, 32, -3, 7},                            // whole vectors
            {-32, 64, -2, 4},
            {-31, 63, -2, 5},                            // not quite
            {-32, 65, -1, 3},
            {-10, 20, -2, 5},
            {-8, 17, 0, 1},                              // Dv = 1
            {0, 1, -8, 17},                              // Du = 1
            {-3, 5, -70, 130},                           // better transposed
            {3, 33, 2, 7},                               // one-sided
            {-40, 31, -9, 5},
            {-100, 100, -3, 6},                          // empty for some pixels of a tile only
            {1, 100, 1, 3},
            {-100, 200, -1, 2},                          // du > 128
            {-140, 290, 0, 2},
            {-2, 3, -150, 300},                          // dv > 256
            {-s.w - 3, 2 * s.w + 7, -s.h - 2, 2 * s.h + 5},  // larger than the image
            {s.w + 5, 10, -1, 3},                        // outside of it
            {-s.w - 50, 40, -1, 3},
            {-3, 6, s.h + 3, 6},
            {-1000000, 9, 1000000, 4},
        };
        for (const Window& win : windows) {
            const int outsides[] = {0, 3, 24, 64, 32, 120};
            const int components[] = {64, 1, 7, 65};
            const int words = seed % 7 < 4 ? 1 : 2;
            const Case c{s.h, s.w, words, components[seed % 4], win, seed % 3 == 1,
                         outsides[seed % 6], seed};
            // Neighboring cases differ in content; the next round of windows, in another way.
            ++seed;
            if (c.entries() <= limit) cases.push_back(c);
        }
        ++seed;
    }
    return cases;
}

}  // namespace

std::size_t check_matching(const std::vector<const Kernels*>& levels,
                           const std::vector<int>& thread_counts, bool quick) {
    const std::vector<Case> cases = make_cases(quick);
    for (const Case& c : cases) {
        current_case = c.name();
        const Problem problem(c);
        Problem::Results want(c);
        problem.run(reference_kernels, want, want);
        for (const Kernels* k : levels) {
            current_level = k->name;
            Problem::Results one(c);
            set_num_threads(1);
            problem.run(*k, one, want);
            problem.compare(one, want);
            for (int threads : thread_counts) {
                Problem::Results many(c);
                set_num_threads(threads);
                problem.run(*k, many, want);
                Problem::compare_threads(many, one, threads);
            }
        }
    }
    return cases.size();
}

}  // namespace hamflow::test
