// Distances to several sets of pixels along paths that avoid image edges, by raster sweeps: exact
// after as many rounds as a shortest path has turns against the direction of the sweeps, which
// in images are few. Along a row every distance waits for the one before, so that four sets are
// swept at a time.
#include "geodesic.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "compiler.hpp"
#include "threads.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hamflow {
namespace {

constexpr float unreached = 1e30f;
constexpr int sets_at_once = 4;
typedef float Quad HAMFLOW_VECTOR(16);

class Four {
   public:
    Four(const Geodesic& p, int first)
        : p_(p), first_(first), count_(std::min(p.sets - first, sets_at_once)),
          n_(static_cast<std::size_t>(p.h) * p.w), d_(n_ * sets_at_once, unreached) {}

    void solve() {
        for (int k = 0; k < count_; ++k) {
            const std::uint8_t* source = p_.source + (first_ + k) * n_;
            for (std::size_t i = 0; i < n_; ++i)
                if (source[i]) d_[i * sets_at_once + k] = 0;
        }
        for (int round = 0; round < p_.rounds; ++round) {
            for (int y = 0; y < p_.h; ++y) sweep(y, y - 1, y - 1);
            for (int y = p_.h - 2; y >= 0; --y) sweep(y, y + 1, y);
        }
        for (int k = 0; k < count_; ++k) {
            float* out = p_.distance + (first_ + k) * n_;
            for (std::size_t i = 0; i < n_; ++i) out[i] = d_[i * sets_at_once + k];
        }
    }

   private:
    static Quad load(const float* from) {
        Quad q;
        std::memcpy(&q, from, sizeof q);
        return q;
    }
    // Returns the shorter way, and keeps it.
    static Quad relax(float* to, Quad from, float step) {
        const Quad there = from + step, here = load(to);
#if defined(__SSE2__)
        const Quad best = (Quad)_mm_min_ps((__m128)there, (__m128)here);
#else
        const Quad best = there < here ? there : here;
#endif
        std::memcpy(to, &best, sizeof best);
        return best;
    }

    // A row from the one before, by the steps of the upper of both, then to both sides.
    void sweep(int y, int before, int steps) {
        const std::size_t w = static_cast<std::size_t>(p_.w);
        float* row = d_.data() + static_cast<std::size_t>(y) * w * sets_at_once;
        if (before >= 0) {
            const float* from = d_.data() + static_cast<std::size_t>(before) * w * sets_at_once;
            const float* down = p_.down + static_cast<std::size_t>(steps) * w;
            for (std::size_t x = 0; x < w; ++x)
                relax(row + x * sets_at_once, load(from + x * sets_at_once), down[x]);
        }
        const float* right = p_.right + static_cast<std::size_t>(y) * w;
        Quad last = load(row);
        for (std::size_t x = 1; x < w; ++x)
            last = relax(row + x * sets_at_once, last, right[x - 1]);
        for (std::size_t x = w - 1; x-- > 0;) last = relax(row + x * sets_at_once, last, right[x]);
    }

    const Geodesic& p_;
    int first_, count_;
    std::size_t n_;
    std::vector<float> d_;
};

}  // namespace

void geodesic_distances(const Geodesic& p) {
    parallel_for((p.sets + sets_at_once - 1) / sets_at_once,
                 [&](int four) { Four(p, four * sets_at_once).solve(); });
}

}  // namespace hamflow
