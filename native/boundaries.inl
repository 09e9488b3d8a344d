// Choice of motions beside motion boundaries. A pixel sees at most `most` different motions: those
// nearest to it, of which two differ by at least `same` pixels.

constexpr int colors = 3;
constexpr int most = 6;
constexpr float same = 1.0f;

using Mask = Buffer<unsigned char>;

void add_mask(unsigned char* __restrict to, const unsigned char* __restrict from,
              int count) {
    for (int x = 0; x < count; ++x) to[x] |= from[x];
}

class MotionChooser {
   public:
    explicit MotionChooser(const Boundaries& p)
        : p_(p), around_(p.radius, p.nearness),
          margin_(round_up(2 * around_.half + 2 * width, 2 * width)),
          planes_(p.h, p.w, margin_, fields), offsets_(around_.vectors), band_(size()),
          changed_(size()), scratch_(size()) {
        for (int n = 0; n < 3; ++n) offsets_[n] = (n - 1) * planes_.pitch - 1;
        for (int n = 3; n < around_.vectors; ++n) {
            const int y = (n - 3) / around_.across - around_.half, k = (n - 3) % around_.across;
            offsets_[n] = 2 * y * planes_.pitch - around_.half + k * width;
        }
    }

    void run() {
        parallel_for(planes_.rows, [&](int y) { prepare(y - margin_); });
        for (int round = 0; round < p_.rounds; ++round) {
            parallel_for(planes_.rows, [&](int y) { copy_flow(y - margin_); });
            parallel_for(p_.h, [&](int y) { find_jumps(y); });
            dilate(band_, p_.reach);
            if (round > 0) {
                // Where no neighbor has changed, the choice would be the same.
                dilate(changed_, p_.radius);
                for (std::size_t i = 0; i < size(); ++i) band_[i] &= changed_[i];
            }
            parallel_for(p_.h, [&](int y) { choose_row(y); });
        }
    }

   private:
    enum { red, green, blue, factor, u_field, v_field, fields };

    std::size_t at(int y, int x) const { return static_cast<std::size_t>(y) * p_.w + x; }
    std::size_t size() const { return static_cast<std::size_t>(p_.h) * p_.w; }
    bool inside(int y) const { return y >= 0 && y < p_.h; }

    void prepare(int y) {
        const int w = p_.w;
        for (int c = 0; c < colors; ++c)
            planes_.write_row(red + c, y, 0, [&](float* __restrict to) {
                if (!inside(y)) return;
                const float* __restrict from = p_.guide + colors * at(y, 0) + c;
                for (int x = 0; x < w; ++x) to[x] = from[colors * x];
            });
        // There is no neighbor outside.
        planes_.write_row(factor, y, 0, [&](float* __restrict to) {
            if (!inside(y)) return;
            const float* __restrict trust = p_.trust + at(y, 0);
            for (int x = 0; x < w; ++x) to[x] = trust[x] > 0 ? 1 : p_.distrust;
        });
    }

    void copy_flow(int y) {
        const int w = p_.w;
        // An undefined motion is far from every other one, and no candidate.
        for (int c = 0; c < 2; ++c)
            planes_.write_row(u_field + c, y, std::numeric_limits<float>::quiet_NaN(),
                              [&](float* __restrict to) {
                                  if (!inside(y)) return;
                                  const float* __restrict from = p_.flow + 2 * at(y, 0) + c;
                                  for (int x = 0; x < w; ++x) to[x] = from[2 * x];
                              });
    }

    // Pixels with a neighbor, of four, whose motion is another.
    void find_jumps(int y) {
        const int w = p_.w, pitch = planes_.pitch;
        unsigned char* __restrict out = &band_[at(y, 0)];
        const float* __restrict u = planes_.field(u_field) + planes_.at(y, 0);
        const float* __restrict v = planes_.field(v_field) + planes_.at(y, 0);
        const float least = p_.jump * p_.jump;
        for (int x = 0; x < w; ++x) {
            const auto apart = [&](int to) HAMFLOW_INLINE_LAMBDA {
                const float du = u[x + to] - u[x], dv = v[x + to] - v[x];
                return static_cast<int>(du * du + dv * dv > least);  // never outside
            };
            out[x] = apart(1) | apart(-1) | apart(pitch) | apart(-pitch);
        }
    }

    // By a square of `reach` pixels on all sides.
    void dilate(Mask& mask, int reach) {
        const int w = p_.w;
        parallel_for(p_.h, [&](int y) {
            unsigned char *out = &scratch_[at(y, 0)], *in = &mask[at(y, 0)];
            std::copy_n(in, w, out);
            for (int k = 1; k <= std::min(reach, w - 1); ++k) {
                add_mask(out, in + k, w - k);
                add_mask(out + k, in, w - k);
            }
        });
        parallel_for(p_.h, [&](int y) {
            std::fill_n(&mask[at(y, 0)], w, static_cast<unsigned char>(0));
            for (int yy = std::max(y - reach, 0); yy <= std::min(y + reach, p_.h - 1); ++yy)
                add_mask(&mask[at(y, 0)], &scratch_[at(yy, 0)], w);
        });
    }

    struct Motion {
        float u, v;
    };
    struct Weights {
        explicit Weights(int vectors) : agreement(vectors), open(vectors) {}

        Buffer<Floats> agreement;  // of all neighbors
        Buffer<Ints> open;         // whose motion is none of the candidates so far
        float data[3][width];      // of 3 x 3 pixels, by color alone
        float agreement_factor, data_factor;  // for a mean, and its part of the cost
    };

    void choose_row(int y) {
        Weights weights(around_.vectors);
        unsigned char* changed = &changed_[at(y, 0)];
        std::fill_n(changed, p_.w, static_cast<unsigned char>(0));
        for (int x = 0; x < p_.w; ++x) {
            if (!band_[at(y, x)]) continue;
            float* flow = p_.flow + 2 * at(y, x);  // others read planes_
            const Motion own{flow[0], flow[1]}, motion = best(y, x, own, weights);
            changed[x] = motion.u != own.u || motion.v != own.v;
            flow[0] = motion.u;
            flow[1] = motion.v;
        }
    }

    // body(n, p) for the vectors around a pixel: the one of field f begins at p + f * distance.
    template <class Body>
    HAMFLOW_INLINE void each(int y, int x, const Body& body) const {
        const float* near = planes_.field(0) + planes_.at(y, x);
        const float* far = planes_.field(0) + planes_.among(y, x);
        const int vectors = around_.vectors;
        for (int n = 0; n < 3; ++n) body(n, near + offsets_[n]);
        for (int n = 3; n < vectors; ++n) body(n, far + offsets_[n]);
    }

    Motion best(int y, int x, Motion own, Weights& weights) const {
        int next = compare(y, x, own, weights);
        if (next < 0) return own;  // nothing to choose
        const float disagreement = weigh(y, x, own, weights);
        float least = disagreement + data(y, x, own, weights) -
                      (p_.trust[at(y, x)] > 0 ? p_.margin : p_.untrusted_margin);
        Motion winner = own;
        // Costs are not negative: often one of them is enough.
        for (int k = 1; k < most && next >= 0 && least > 0; ++k) {
            const Offset& o = around_.offsets[next];
            const float* flow = planes_.field(u_field) + planes_.at(y + o.y, x + o.x);
            const Motion motion{flow[0], flow[planes_.distance()]};
            float cost;
            next = compare_with(y, x, motion, weights, &cost);
            if (cost < least) cost += data(y, x, motion, weights);
            if (!(cost < least)) continue;
            least = cost;
            winner = motion;
        }
        return winner;
    }

    HAMFLOW_INLINE Floats apart(const float* place, Motion motion) const {
        const std::size_t d = planes_.distance();
        return absolute(load<Floats>(place + u_field * d) - motion.u) +
               absolute(load<Floats>(place + v_field * d) - motion.v);
    }
    HAMFLOW_INLINE Floats part(const Floats& apart) const {
        const Floats share = apart * (1 / p_.apart), one = Floats{} + 1.0f;
        return share < one ? share : one;
    }
    // The best of the places that are open.
    HAMFLOW_INLINE void rank(int n, const Ints& open, Ints& least) const {
        Ints rank;
        std::memcpy(&rank, &around_.rank[static_cast<std::size_t>(n) * width], sizeof(rank));
        rank = open ? rank : Ints{} + Stencil::most_ranks;
        least = rank < least ? rank : least;
    }
    static HAMFLOW_INLINE int first_of(const Ints& ranks) {
        int first = ranks[0];
        for (int k = 1; k < width; ++k) first = ranks[k] < first ? ranks[k] : first;
        return first == Stencil::most_ranks ? -1 : first;
    }

    // The nearest neighbor with another motion than this first one; -1 if there is none.
    int compare(int y, int x, Motion motion, Weights& weights) const {
        Ints least = Ints{} + Stencil::most_ranks;
        each(y, x, [&](int n, const float* place) HAMFLOW_INLINE_LAMBDA {
            const Ints open = apart(place, motion) >= same;
            weights.open[n] = open;
            rank(n, open, least);
        });
        return first_of(least);
    }

    // The same with another motion than all so far; and how much neighbors disagree.
    int compare_with(int y, int x, Motion motion, Weights& weights, float* disagreement) const {
        Ints least = Ints{} + Stencil::most_ranks;
        Floats sum{};
        each(y, x, [&](int n, const float* place) HAMFLOW_INLINE_LAMBDA {
            const Floats far = apart(place, motion);
            const Ints open = weights.open[n] & (far >= same);
            weights.open[n] = open;
            rank(n, open, least);
            sum += weights.agreement[n] * part(far);
        });
        *disagreement = weights.agreement_factor * sum_of(sum);
        return first_of(least);
    }

    // Finds the weights; returns how much neighbors disagree with the pixel's own motion.
    float weigh(int y, int x, Motion own, Weights& weights) const {
        const std::size_t d = planes_.distance();
        const float* here = planes_.field(0) + planes_.at(y, x);
        const float r = here[0], g = here[d], b = here[2 * d], falling = -p_.color / colors;
        Floats total{}, sum{};
        each(y, x, [&](int n, const float* place) HAMFLOW_INLINE_LAMBDA {
            const Floats contrast = absolute(load<Floats>(place) - r) +
                                    absolute(load<Floats>(place + d) - g) +
                                    absolute(load<Floats>(place + 2 * d) - b);
            const Floats similar = exponential(falling * contrast);
            if (n < 3) store(weights.data[n], similar);
            const float* nearness = &around_.nearness[static_cast<std::size_t>(n) * width];
            const Floats weight =
                similar * load<Floats>(nearness) * load<Floats>(place + factor * d);
            weights.agreement[n] = weight;
            total += weight;
            sum += weight * part(apart(place, own));
        });
        float data_total = 0;
        for (int dy = 0; dy < 3; ++dy)
            for (int dx = 0; dx < 3; ++dx) {
                const bool exists = inside(y + dy - 1) && x + dx >= 1 && x + dx <= p_.w;
                if (!exists) weights.data[dy][dx] = 0;
                data_total += weights.data[dy][dx];
            }
        weights.data_factor = 1 / data_total;
        weights.agreement_factor = p_.smoothness / std::max(sum_of(total), 1e-9f);
        return weights.agreement_factor * sum_of(sum);
    }

    float data(int y, int x, Motion motion, const Weights& weights) const {
        const float tx = static_cast<float>(x) + motion.u, ty = static_cast<float>(y) + motion.v;
        const bool within = x > 0 && y > 0 && x + 1 < p_.w && y + 1 < p_.h && tx >= 1 && ty >= 1 &&
                            tx < static_cast<float>(p_.w - 2) && ty < static_cast<float>(p_.h - 2);
        float sum = 0;
        if (!within) {
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx) {
                    const float weight = weights.data[dy + 1][dx + 1];
                    if (weight > 0) sum += weight * difference(y + dy, x + dx, motion);
                }
            return sum * weights.data_factor;
        }
        // All 3 x 3 pixels lie equally between those of the other image.
        const int left = static_cast<int>(tx), top = static_cast<int>(ty);
        const float a = tx - static_cast<float>(left), b = ty - static_cast<float>(top);
        const float scale = 1 / (colors * p_.difference);
        Quad row[2][3];
        for (int dy = -1; dy <= 2; ++dy) {
            const float* from = p_.f1 + at(top + dy, left - 1) * channels;
            Quad(&now)[3] = row[(dy + 1) & 1];
            const Quad(&before)[3] = row[dy & 1];
            Quad here = load<Quad>(from);
            for (int k = 0; k < 3; ++k) {
                const Quad next = load<Quad>(from + (k + 1) * channels);
                now[k] = here + a * (next - here);
                here = next;
            }
            if (dy < 0) continue;
            const float* first = p_.f0 + at(y + dy - 1, x - 1) * channels;
            for (int k = 0; k < 3; ++k) {
                const Quad there = before[k] + b * (now[k] - before[k]);
                const Quad apart = absolute(there - load<Quad>(first + k * channels));
                const float mean = (apart[0] + apart[1] + apart[2]) * scale;
                sum += weights.data[dy][k] * (mean < 1 ? mean : 1);
            }
        }
        return sum * weights.data_factor;
    }

    // Of one pixel to where a motion takes it, bilinear, from 0 to 1.
    float difference(int y, int x, Motion motion) const {
        const float tx = static_cast<float>(x) + motion.u, ty = static_cast<float>(y) + motion.v;
        const float last_x = static_cast<float>(p_.w - 1), last_y = static_cast<float>(p_.h - 1);
        if (!(tx >= 0 && ty >= 0 && tx <= last_x && ty <= last_y)) return p_.outside;
        const int left = static_cast<int>(tx), top = static_cast<int>(ty);
        const int right = std::min(left + 1, p_.w - 1), bottom = std::min(top + 1, p_.h - 1);
        const float a = tx - static_cast<float>(left), b = ty - static_cast<float>(top);
        const float *tl = &p_.f1[at(top, left) * channels], *tr = &p_.f1[at(top, right) * channels];
        const float *bl = &p_.f1[at(bottom, left) * channels];
        const float *br = &p_.f1[at(bottom, right) * channels];
        const float* here = &p_.f0[at(y, x) * channels];
        float sum = 0;
        for (int c = 0; c < colors; ++c) {
            const float upper = tl[c] + a * (tr[c] - tl[c]), lower = bl[c] + a * (br[c] - bl[c]);
            sum += std::fabs(upper + b * (lower - upper) - here[c]);
        }
        return std::min(sum / (colors * p_.difference), 1.0f);
    }

    const Boundaries& p_;
    Stencil around_;
    int margin_;
    PaddedFields planes_;
    Buffer<std::ptrdiff_t> offsets_;  // of the vectors, from a pixel
    Mask band_, changed_, scratch_;
};

void choose_motions(const Boundaries& problem) {
    if (problem.rounds > 0) MotionChooser(problem).run();
}
