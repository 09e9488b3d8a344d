// How well candidate motions suit a pixel. For each candidate, 20 features are gathered: bits at its
// target, whether the way back from there ends here (visible) or elsewhere (hidden), how far the
// matches that support it are, how many of the matches around agree with it, how it compares with
// the interpolated and the matched flow. A small network turns them into a score.
#include "scoring.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "popcount.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

constexpr int near_radius = 2, support_radius = 8, wide_radius = 32;

// Sums over squares of (2 radius + 1)^2 pixels, where inside of the image. Of whole numbers, so
// that running sums are exact.
void box_sums(const std::vector<float>& in, int h, int w, int radius, std::vector<float>& out) {
    std::vector<float> across(in.size()), column(static_cast<std::size_t>(w), 0.0f);
    for (int y = 0; y < h; ++y) {
        const float* row = &in[static_cast<std::size_t>(y) * w];
        float sum = 0;
        for (int x = 0; x < std::min(radius, w); ++x) sum += row[x];
        for (int x = 0; x < w; ++x) {
            if (x + radius < w) sum += row[x + radius];
            if (x - radius - 1 >= 0) sum -= row[x - radius - 1];
            across[static_cast<std::size_t>(y) * w + x] = sum;
        }
    }
    out.resize(in.size());
    const auto add = [&](int y, float sign) {
        const float* row = &across[static_cast<std::size_t>(y) * w];
        for (int x = 0; x < w; ++x) column[x] += sign * row[x];
    };
    for (int y = 0; y < std::min(radius, h); ++y) add(y, 1);
    for (int y = 0; y < h; ++y) {
        if (y + radius < h) add(y + radius, 1);
        if (y - radius - 1 >= 0) add(y - radius - 1, -1);
        std::copy(column.begin(), column.end(), &out[static_cast<std::size_t>(y) * w]);
    }
}

float area(int radius) { return static_cast<float>((2 * radius + 1) * (2 * radius + 1)); }

class Scorer {
   public:
    explicit Scorer(const Scoring& p)
        : p_(p), n_(static_cast<std::size_t>(p.h) * p.w), maps_(static_cast<std::size_t>(p.labels)) {}

    void solve() {
        parallel_for(p_.labels + 2, [&](int k) {
            if (k < p_.labels) return gather(k);
            std::vector<float> kept(n_);
            for (std::size_t i = 0; i < n_; ++i) kept[i] = p_.kept[i] ? 1.0f : 0.0f;
            if (k == p_.labels) return box_sums(kept, p_.h, p_.w, support_radius, kept_near_);
            box_sums(kept, p_.h, p_.w, wide_radius, kept_wide_);
        });
        constexpr int block = 256;
        parallel_for((p_.pixels + block - 1) / block, [&](int b) {
            std::vector<float> f(static_cast<std::size_t>(p_.labels) * score_features);
            std::vector<float> units(static_cast<std::size_t>(2 * p_.hidden));
            for (int k = b * block; k < std::min(p_.pixels, (b + 1) * block); ++k) {
                describe(p_.pixel[k], f.data());
                const std::size_t to = static_cast<std::size_t>(k) * p_.labels;
                if (p_.features != nullptr)
                    std::copy(f.begin(), f.end(), p_.features + to * score_features);
                if (p_.score == nullptr) continue;
                for (int l = 0; l < p_.labels; ++l)
                    p_.score[to + l] = judged(&f[l * score_features], units.data());
            }
        });
    }

   private:
    // What is known of the target of one candidate, everywhere.
    struct Maps {
        std::vector<float> inside, distance, elsewhere;           // of the pixel
        std::vector<float> insides, distances, elsewheres;        // summed over the pixels around
        std::vector<float> agreeing_near, agreeing_wide;
        std::vector<std::uint8_t> returns;
    };

    void gather(int l) {
        Maps& m = maps_[l];
        std::vector<float> agreeing(n_);
        for (auto* field : {&m.inside, &m.distance, &m.elsewhere}) field->assign(n_, 0.0f);
        m.returns.assign(n_, 0);
        for (int y = 0; y < p_.h; ++y)
            for (int x = 0; x < p_.w; ++x) {
                const std::size_t i = static_cast<std::size_t>(y) * p_.w + x;
                const float u = motion(l, i)[0], v = motion(l, i)[1];
                agreeing[i] = p_.kept[i] && apart(l, i) < 1 ? 1.0f : 0.0f;
                const float tx = x + u, ty = y + v;
                if (!(tx > -0.5f && tx < p_.w - 0.5f && ty > -0.5f && ty < p_.h - 0.5f)) continue;
                m.inside[i] = 1;
                m.distance[i] = static_cast<float>(least_distance(i, tx, ty));
                const std::size_t to = static_cast<std::size_t>(whole(ty, p_.h)) * p_.w + whole(tx, p_.w);
                if (!p_.back_trusted[to]) continue;
                const float du = p_.back[2 * to] + u, dv = p_.back[2 * to + 1] + v;
                const float away = du * du + dv * dv;
                m.returns[i] = away <= 1.5f * 1.5f;
                m.elsewhere[i] = away > 2.5f * 2.5f ? 1.0f : 0.0f;
            }
        box_sums(m.inside, p_.h, p_.w, near_radius, m.insides);
        box_sums(m.distance, p_.h, p_.w, near_radius, m.distances);
        box_sums(m.elsewhere, p_.h, p_.w, near_radius, m.elsewheres);
        box_sums(agreeing, p_.h, p_.w, support_radius, m.agreeing_near);
        box_sums(agreeing, p_.h, p_.w, wide_radius, m.agreeing_wide);
    }

    const float* motion(int l, std::size_t i) const { return p_.motion + 2 * (l * n_ + i); }

    float apart(int l, std::size_t i) const {
        const float du = motion(l, i)[0] - motion(0, i)[0], dv = motion(l, i)[1] - motion(0, i)[1];
        return std::sqrt(du * du + dv * dv);
    }

    static int whole(float at, int side) {
        return std::clamp(static_cast<int>(std::nearbyint(at)), 0, side - 1);
    }

    // Of the four pixels around the target, the one with the most similar bits.
    int least_distance(std::size_t i, float tx, float ty) const {
        const int x0 = std::clamp(static_cast<int>(std::floor(tx)), 0, p_.w - 1);
        const int y0 = std::clamp(static_cast<int>(std::floor(ty)), 0, p_.h - 1);
        const int x1 = std::min(x0 + 1, p_.w - 1), y1 = std::min(y0 + 1, p_.h - 1);
        int least = 64;
        for (int y : {y0, y1})
            for (int x : {x0, x1})
                least = std::min(least, popcount(p_.bits0[i] ^
                                                 p_.bits1[static_cast<std::size_t>(y) * p_.w + x]));
        return least;
    }

    // All features of all candidates of a pixel.
    void describe(int pixel, float* first) const {
        const std::size_t i = static_cast<std::size_t>(pixel);
        const float near = kept_near_[i] / area(support_radius);
        const float wide = kept_wide_[i] / area(wide_radius);
        const float texture = std::log(p_.texture[i] + 0.003f);
        float least_bits = 64, least_path = 1e30f;
        float* f = first;
        for (int l = 0; l < p_.labels; ++l, f += score_features) {
            const Maps& m = maps_[l];
            const float u = motion(l, i)[0], v = motion(l, i)[1];
            const float du = u - p_.matched[2 * i], dv = v - p_.matched[2 * i + 1];
            const float bits = m.inside[i] > 0 ? m.distances[i] / m.insides[i] : 32.0f;
            const float path = std::log(std::min(p_.geodesic[l * n_ + i], 1e9f) + 0.02f);
            least_bits = std::min(least_bits, bits);
            if (l > 0 || p_.labels == 1) least_path = std::min(least_path, path);
            f[0] = m.inside[i];
            f[1] = m.distance[i] / 32;
            f[2] = bits / 32;
            f[4] = m.returns[i];
            f[5] = m.elsewhere[i];
            f[6] = m.elsewheres[i] / area(near_radius);
            f[7] = path;
            f[9] = std::log1p(apart(l, i));
            f[10] = std::log1p(std::sqrt(du * du + dv * dv));
            f[11] = std::log1p(beyond(0, u) + beyond(1, v));
            f[12] = (m.agreeing_near[i] / area(support_radius) + 0.002f) / (near + 0.004f);
            f[13] = (m.agreeing_wide[i] / area(wide_radius) + 0.002f) / (wide + 0.004f);
            f[14] = wide;
            f[15] = l == 0 ? 1.0f : 0.0f;
            f[16] = first[7];
            f[17] = p_.size[l];
            f[18] = texture;
            f[19] = m.insides[i] / area(near_radius);
        }
        f = first;
        for (int l = 0; l < p_.labels; ++l, f += score_features) {
            f[3] = (32 * f[2] - least_bits) / 16;
            f[8] = f[7] - least_path;
        }
    }

    float beyond(int k, float value) const {
        return std::max({p_.low[k] - value, value - p_.high[k], 0.0f});
    }

    // Both inner layers rectify; weights are input by input, so that the units are independent sums.
    float judged(const float* f, float* units) const {
        const float *low = p_.network, *high = low + score_features;
        const float* w = high + score_features;
        float* second = units + p_.hidden;
        float bounded[score_features];
        for (int k = 0; k < score_features; ++k)
            bounded[k] = std::min(std::max(f[k], low[k]), high[k]);
        w = layer(bounded, score_features, w, units);
        w = layer(units, p_.hidden, w, second);
        float sum = 0;
        for (int j = 0; j < p_.hidden; ++j) sum += w[j] * second[j];
        return sum;
    }

    const float* layer(const float* in, int count, const float* w, float* out) const {
        const int n = p_.hidden;
        std::copy_n(w, n, out);  // the biases
        w += n;
        for (int k = 0; k < count; ++k, w += n)
            for (int j = 0; j < n; ++j) out[j] += w[j] * in[k];
        for (int j = 0; j < n; ++j) out[j] = std::max(out[j], 0.0f);
        return w;
    }

    const Scoring& p_;
    std::size_t n_;
    std::vector<Maps> maps_;
    std::vector<float> kept_near_, kept_wide_;
};

}  // namespace

void score_candidates(const Scoring& problem) { Scorer(problem).solve(); }

}  // namespace hamflow
