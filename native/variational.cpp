// Variational refinement. After each warp the data term becomes, for each group of channels, a
// quadratic form in the increment (du, dv): six numbers per pixel, whatever the number of
// channels. The iterations then read only these numbers.
#include "variational.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

constexpr int channels = feature_channels;
constexpr int block_rows = 8;  // handed to a thread at a time

template <class Body>
void for_rows(int h, const Body& body) {
    parallel_for((h + block_rows - 1) / block_rows, [&](int block) {
        const int end = std::min(h, (block + 1) * block_rows);
        for (int y = block * block_rows; y < end; ++y) body(y);
    });
}

// [du dv 1] J [du dv 1]^T
struct Form {
    float uu, uv, vv, ut, vt, tt;

    float at(float du, float dv) const {
        const float value = uu * du * du + vv * dv * dv + tt +
                            2 * (uv * du * dv + ut * du + vt * dv);
        return std::max(value, 0.0f);  // rounding
    }
};

void cubic(float t, float* c) {  // Catmull-Rom
    const float t2 = t * t, t3 = t2 * t;
    c[0] = 0.5f * (-t3 + 2 * t2 - t);
    c[1] = 0.5f * (3 * t3 - 5 * t2 + 2);
    c[2] = 0.5f * (-3 * t3 + 4 * t2 + t);
    c[3] = 0.5f * (t3 - t2);
}

class Solver {
   public:
    explicit Solver(const Variational& p)
        : p_(p), n_(static_cast<std::size_t>(p.h) * p.w), warped_(n_ * channels), inside_(n_),
          data_weight_(n_), first_(n_), second_(n_), psi_(n_), system_(n_), du_(n_), dv_(n_) {}

    void solve() {
        for (int k = 0; k < p_.warps; ++k) {
            for_rows(p_.h, [&](int y) { warp_row(y); });
            for_rows(p_.h, [&](int y) { linearize_row(y); });
            std::fill(du_.begin(), du_.end(), 0.0f);
            std::fill(dv_.begin(), dv_.end(), 0.0f);
            for (int i = 0; i < p_.inner; ++i) {
                for_rows(p_.h, [&](int y) { robust_row(y); });
                for_rows(p_.h, [&](int y) { assemble_row(y); });
                for (int s = 0; s < p_.sweeps; ++s)
                    for (int color = 0; color < 2; ++color)
                        for_rows(p_.h, [&](int y) { relax_row(y, color); });
            }
            for_rows(p_.h, [&](int y) { add_row(y); });
        }
    }

   private:
    std::size_t at(int y, int x) const { return static_cast<std::size_t>(y) * p_.w + x; }

    void warp_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            const float tx = x + p_.flow[2 * i], ty = y + p_.flow[2 * i + 1];
            const bool inside = tx >= 0 && ty >= 0 && tx <= p_.w - 1 && ty <= p_.h - 1;
            inside_[i] = inside;
            float* out = &warped_[i * channels];
            if (!inside) {
                // There is no data term here, but derivatives of neighbors read this value.
                std::copy_n(&p_.f0[i * channels], channels, out);
                continue;
            }
            const int left = static_cast<int>(tx), top = static_cast<int>(ty);
            float cx[4], cy[4], sum[channels] = {};
            cubic(tx - left, cx);
            cubic(ty - top, cy);
            for (int r = 0; r < 4; ++r) {
                const int yy = std::clamp(top - 1 + r, 0, p_.h - 1);
                for (int k = 0; k < 4; ++k) {
                    const int xx = std::clamp(left - 1 + k, 0, p_.w - 1);
                    const float c = cy[r] * cx[k];
                    const float* from = &p_.f1[at(yy, xx) * channels];
                    for (int f = 0; f < channels; ++f) sum[f] += c * from[f];
                }
            }
            std::copy_n(sum, channels, out);
        }
    }

    // Five-point derivatives of the mean of both frames, along one direction.
    void derivative(const std::size_t (&taps)[4], float* out) const {
        for (int f = 0; f < channels; ++f) {
            const auto mean = [&](std::size_t i) {
                return p_.f0[i * channels + f] + warped_[i * channels + f];
            };
            out[f] = (8 * (mean(taps[2]) - mean(taps[1])) - (mean(taps[3]) - mean(taps[0]))) *
                     (1.0f / 24);
        }
    }

    void linearize_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            float dx[channels], dy[channels];
            std::size_t taps[4];
            for (int k = 0; k < 4; ++k)
                taps[k] = at(y, std::clamp(x + k - (k < 2 ? 2 : 1), 0, p_.w - 1));
            derivative(taps, dx);
            for (int k = 0; k < 4; ++k)
                taps[k] = at(std::clamp(y + k - (k < 2 ? 2 : 1), 0, p_.h - 1), x);
            derivative(taps, dy);
            Form forms[2] = {};
            for (int f = 0; f < channels; ++f) {
                const float dt = warped_[i * channels + f] - p_.f0[i * channels + f];
                const float theta = 1 / (dx[f] * dx[f] + dy[f] * dy[f] + p_.zeta * p_.zeta);
                Form& j = forms[f >= p_.first_group];
                j.uu += theta * dx[f] * dx[f];
                j.uv += theta * dx[f] * dy[f];
                j.vv += theta * dy[f] * dy[f];
                j.ut += theta * dx[f] * dt;
                j.vt += theta * dy[f] * dt;
                j.tt += theta * dt * dt;
            }
            data_weight_[i] = inside_[i] ? p_.weight[i] : 0;
            first_[i] = forms[0];
            second_[i] = forms[1];
        }
    }

    float u(std::size_t i) const { return p_.flow[2 * i] + du_[i]; }
    float v(std::size_t i) const { return p_.flow[2 * i + 1] + dv_[i]; }

    // psi' of the smoothness term, and the data term's part of the linear system.
    void robust_row(int y) {
        const float e2 = p_.epsilon * p_.epsilon;
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            const std::size_t l = at(y, std::max(x - 1, 0)), r = at(y, std::min(x + 1, p_.w - 1));
            const std::size_t a = at(std::max(y - 1, 0), x), b = at(std::min(y + 1, p_.h - 1), x);
            const float ux = u(r) - u(l), uy = u(b) - u(a), vx = v(r) - v(l), vy = v(b) - v(a);
            psi_[i] = 0.5f /
                      std::sqrt(0.25f * (ux * ux + uy * uy + vx * vx + vy * vy) + e2);
            System s{};
            const Form* forms[2] = {&first_[i], &second_[i]};
            for (int g = 0; g < 2; ++g) {
                const Form& j = *forms[g];
                const float c = data_weight_[i] * p_.strength[g] * 0.5f /
                                std::sqrt(j.at(du_[i], dv_[i]) + e2);
                s.uu += c * j.uu;
                s.uv += c * j.uv;
                s.vv += c * j.vv;
                s.bu -= c * j.ut;
                s.bv -= c * j.vt;
            }
            system_[i] = s;
        }
    }

    // The smoothness term's part: couplings, and what they make of the flow before the increment.
    void assemble_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            System& s = system_[i];
            s.right = x + 1 < p_.w
                          ? 0.5f * p_.alpha * p_.right[i] * (psi_[i] + psi_[i + 1]) : 0;
            s.down = y + 1 < p_.h
                         ? 0.5f * p_.alpha * p_.down[i] * (psi_[i] + psi_[i + p_.w]) : 0;
            const auto couple = [&](std::size_t j, float c) {
                s.uu += c;
                s.vv += c;
                s.bu += c * (p_.flow[2 * j] - p_.flow[2 * i]);
                s.bv += c * (p_.flow[2 * j + 1] - p_.flow[2 * i + 1]);
            };
            if (x > 0)
                couple(i - 1, 0.5f * p_.alpha * p_.right[i - 1] * (psi_[i] + psi_[i - 1]));
            if (x + 1 < p_.w) couple(i + 1, s.right);
            if (y > 0)
                couple(i - p_.w,
                       0.5f * p_.alpha * p_.down[i - p_.w] * (psi_[i] + psi_[i - p_.w]));
            if (y + 1 < p_.h) couple(i + p_.w, s.down);
            // Nothing pulls at a pixel without data and neighbors (a 1x1 image).
            s.uu += 1e-12f;
            s.vv += 1e-12f;
        }
    }

    void relax_row(int y, int color) {
        for (int x = (y + color) % 2; x < p_.w; x += 2) {
            const std::size_t i = at(y, x);
            const System& s = system_[i];
            float bu = s.bu, bv = s.bv;
            const auto pull = [&](std::size_t j, float c) {
                bu += c * du_[j];
                bv += c * dv_[j];
            };
            if (x > 0) pull(i - 1, system_[i - 1].right);
            if (x + 1 < p_.w) pull(i + 1, s.right);
            if (y > 0) pull(i - p_.w, system_[i - p_.w].down);
            if (y + 1 < p_.h) pull(i + p_.w, s.down);
            // Without neighbors (a single pixel) the data alone may leave one direction open.
            const float determinant =
                std::max(s.uu * s.vv - s.uv * s.uv, 1e-6f * s.uu * s.vv);
            const float du = (s.vv * bu - s.uv * bv) / determinant;
            const float dv = (s.uu * bv - s.uv * bu) / determinant;
            du_[i] += p_.omega * (du - du_[i]);
            dv_[i] += p_.omega * (dv - dv_[i]);
        }
    }

    void add_row(int y) {
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            // A linearization is good for about a pixel.
            p_.flow[2 * i] += std::clamp(du_[i], -largest_step, largest_step);
            p_.flow[2 * i + 1] += std::clamp(dv_[i], -largest_step, largest_step);
        }
    }

    static constexpr float largest_step = 2.0f;
    struct System {
        float uu, uv, vv, bu, bv;  // of the pixel itself
        float right, down;         // couplings
    };
    const Variational& p_;
    std::size_t n_;
    std::vector<float> warped_;
    std::vector<unsigned char> inside_;
    std::vector<float> data_weight_;
    std::vector<Form> first_, second_;
    std::vector<float> psi_;
    std::vector<System> system_;
    std::vector<float> du_, dv_;
};

}  // namespace

void refine_variational(const Variational& problem) { Solver(problem).solve(); }

}  // namespace hamflow
