// Choice of motions beside motion boundaries. A pixel sees at most `most` different motions: those
// nearest to it, of which two differ by at least `same` pixels.
//
// The neighborhood of a pixel, all of 3 x 3 and every other pixel beyond, lies in a few short
// vectors: three of them in the rows of the image, the others in rows of its even or odd columns.

constexpr int colors = 3;
constexpr int most = 6;
constexpr float same = 1.0f;

struct Offset {
    int y, x, slot;  // slot: where in the vectors
};

// The vectors of a neighborhood, first those of 3 x 3. Places that are no neighbors have weight 0
// and the last rank.
struct Neighborhood {
    Neighborhood(int radius, float deviation)
        : half(radius / 2), across((2 * half + 1 + width - 1) / width),
          vectors(3 + (2 * half + 1) * across), nearness(vectors * width, 0.0f),
          rank(vectors * width, most_ranks), offsets(vectors * width) {
        for (int y = -1; y <= 1; ++y)
            for (int x = -1; x <= 1; ++x)
                if (y != 0 || x != 0) offsets[count++] = {y, x, (y + 1) * width + x + 1};
        for (int y = -half; y <= half; ++y)
            for (int x = -half; x <= half; ++x)
                offsets[count++] = {2 * y, 2 * x,
                                    (3 + (y + half) * across) * width + x + half};
        const auto square = [](const Offset& o) { return o.y * o.y + o.x * o.x; };
        // From the center outwards, and of those as far away row by row.
        std::sort(offsets.data(), offsets.data() + count, [&](const Offset& a, const Offset& b) {
            if (square(a) != square(b)) return square(a) < square(b);
            return a.y != b.y ? a.y < b.y : a.x < b.x;
        });
        for (int n = 0; n < count; ++n) {
            const Offset& o = offsets[n];
            nearness[o.slot] =
                std::exp(-static_cast<float>(square(o)) / (2 * deviation * deviation));
            rank[o.slot] = n;
        }
    }

    static constexpr int most_ranks = 1 << 30;
    int half, across, vectors;
    Buffer<float> nearness;
    Buffer<int> rank;
    Buffer<Offset> offsets;  // by rank
    int count = 0;
};

// A field with a margin, in the order of its columns and with even and odd ones apart.
class Plane {
   public:
    Plane(int h, int w, int margin)
        : margin_(margin), pitch_(round_up(w + 2 * margin, 2 * width)), plane_(pitch_ * (h + 2 * margin)),
          data_(2 * plane_ + 2 * width) {}

    float* row(int y) { return data_.data() + (y + margin_) * pitch_ + margin_; }
    const float* at(int y, int x) const {
        return data_.data() + (y + margin_) * pitch_ + margin_ + x;
    }
    // Where x and its neighbors at even distances stand side by side.
    const float* among(int y, int x) const {
        return data_.data() + plane_ + (y + margin_) * pitch_ + (x & 1) * (pitch_ / 2) +
               (margin_ + x) / 2;
    }
    void clear_row(int y, float value) {
        std::fill_n(data_.data() + (y + margin_) * pitch_, pitch_, value);
    }
    void part_row(int y) {
        const float* HAMFLOW_RESTRICT from = data_.data() + (y + margin_) * pitch_;
        float* HAMFLOW_RESTRICT even = data_.data() + plane_ + (y + margin_) * pitch_;
        float* HAMFLOW_RESTRICT odd = even + pitch_ / 2;
        HAMFLOW_INDEPENDENT
        for (std::size_t k = 0; k < pitch_ / 2; ++k) {
            even[k] = from[2 * k];
            odd[k] = from[2 * k + 1];
        }
    }

   private:
    std::size_t margin_, pitch_, plane_;
    Buffer<float> data_;
};

using Mask = Buffer<unsigned char>;

class Chooser {
   public:
    explicit Chooser(const Boundaries& p)
        : p_(p), around_(p.radius, p.nearness), margin_(round_up(2 * around_.half + 2 * width, 2 * width)),
          guide_{plane(), plane(), plane()}, factor_(plane()), flow_{plane(), plane()},
          band_(size()), changed_(size()), scratch_(size()) {}

    void run() {
        parallel_for(p_.h + 2 * margin_, [&](int y) { prepare(y - margin_); });
        for (int round = 0; round < p_.rounds; ++round) {
            parallel_for(p_.h + 2 * margin_, [&](int y) { copy_flow(y - margin_); });
            parallel_for(p_.h, [&](int y) { find_jumps(y); });
            dilate(band_, p_.reach);
            if (round > 0) {
                // Where no neighbor has changed, the choice would be the same.
                dilate(changed_, p_.radius);
                parallel_for(p_.h, [&](int y) {
                    for (int x = 0; x < p_.w; ++x) band_[at(y, x)] &= changed_[at(y, x)];
                });
            }
            parallel_for(p_.h, [&](int y) { choose_row(y); });
        }
    }

   private:
    std::size_t at(int y, int x) const { return static_cast<std::size_t>(y) * p_.w + x; }
    std::size_t size() const { return static_cast<std::size_t>(p_.h) * p_.w; }
    Plane plane() const { return Plane(p_.h, p_.w, margin_); }

    void prepare(int y) {
        for (int c = 0; c < colors; ++c) guide_[c].clear_row(y, 0);
        factor_.clear_row(y, 0);  // there is no neighbor outside
        if (y >= 0 && y < p_.h) {
            const float* HAMFLOW_RESTRICT from = p_.guide + colors * at(y, 0);
            float* HAMFLOW_RESTRICT factor = factor_.row(y);
            for (int c = 0; c < colors; ++c) {
                float* HAMFLOW_RESTRICT to = guide_[c].row(y);
                for (int x = 0; x < p_.w; ++x) to[x] = from[colors * x + c];
            }
            for (int x = 0; x < p_.w; ++x) factor[x] = p_.trust[at(y, x)] > 0 ? 1 : p_.distrust;
        }
        for (int c = 0; c < colors; ++c) guide_[c].part_row(y);
        factor_.part_row(y);
    }

    void copy_flow(int y) {
        for (int c = 0; c < 2; ++c) {
            // Far from every motion in all comparisons, and no candidate.
            flow_[c].clear_row(y, std::numeric_limits<float>::quiet_NaN());
            if (y >= 0 && y < p_.h) {
                float* HAMFLOW_RESTRICT to = flow_[c].row(y);
                const float* HAMFLOW_RESTRICT from = p_.flow + 2 * at(y, 0) + c;
                for (int x = 0; x < p_.w; ++x) to[x] = from[2 * x];
            }
            flow_[c].part_row(y);
        }
    }

    // Pixels with a neighbor, of four, whose motion is another.
    void find_jumps(int y) {
        unsigned char* HAMFLOW_RESTRICT out = &band_[at(y, 0)];
        const float least = p_.jump * p_.jump;
        const float *HAMFLOW_RESTRICT u = flow_[0].at(y, 0), *HAMFLOW_RESTRICT v = flow_[1].at(y, 0);
        const float *HAMFLOW_RESTRICT ua = flow_[0].at(y - 1, 0), *HAMFLOW_RESTRICT va = flow_[1].at(y - 1, 0);
        const float *HAMFLOW_RESTRICT ub = flow_[0].at(y + 1, 0), *HAMFLOW_RESTRICT vb = flow_[1].at(y + 1, 0);
        const auto apart = [&](float du, float dv) HAMFLOW_INLINE_LAMBDA {
            return du * du + dv * dv > least;  // never outside, which is undefined
        };
        for (int x = 0; x < p_.w; ++x)
            out[x] = apart(u[x + 1] - u[x], v[x + 1] - v[x]) | apart(u[x - 1] - u[x], v[x - 1] - v[x]) |
                     apart(ua[x] - u[x], va[x] - v[x]) | apart(ub[x] - u[x], vb[x] - v[x]);
    }

    // By a square of `reach` pixels on all sides.
    void dilate(Mask& mask, int reach) {
        parallel_for(p_.h, [&](int y) {
            unsigned char* HAMFLOW_RESTRICT out = &scratch_[at(y, 0)];
            const unsigned char* HAMFLOW_RESTRICT in = &mask[at(y, 0)];
            std::copy_n(in, p_.w, out);
            for (int k = 1; k <= std::min(reach, p_.w - 1); ++k) {
                for (int x = 0; x + k < p_.w; ++x) out[x] |= in[x + k];
                for (int x = k; x < p_.w; ++x) out[x] |= in[x - k];
            }
        });
        parallel_for(p_.h, [&](int y) {
            unsigned char* HAMFLOW_RESTRICT out = &mask[at(y, 0)];
            std::fill_n(out, p_.w, static_cast<unsigned char>(0));
            for (int yy = std::max(y - reach, 0); yy <= std::min(y + reach, p_.h - 1); ++yy) {
                const unsigned char* HAMFLOW_RESTRICT in = &scratch_[at(yy, 0)];
                for (int x = 0; x < p_.w; ++x) out[x] |= in[x];
            }
        });
    }

    struct Motion {
        float u, v;
    };
    struct Weights {
        explicit Weights(int vectors) : agreement(vectors), apart(vectors), open(vectors) {}

        Buffer<Floats> agreement;  // of all neighbors
        Buffer<Floats> apart;      // how far the motion in question is from theirs
        Buffer<Ints> open;         // whose motion is none of the candidates so far
        Floats data[3];            // of 3 x 3 pixels, by color alone
        float total, data_total;
    };

    void choose_row(int y) {
        Weights weights(around_.vectors);
        for (int x = 0; x < p_.w; ++x) {
            const std::size_t i = at(y, x);
            changed_[i] = 0;
            if (!band_[i]) continue;
            const Motion own{p_.flow[2 * i], p_.flow[2 * i + 1]};
            const Motion motion = best(y, x, own, weights);
            changed_[i] = motion.u != own.u || motion.v != own.v;
            p_.flow[2 * i] = motion.u;  // others still read flow_
            p_.flow[2 * i + 1] = motion.v;
        }
    }

    // body(vector, its number) for the vectors of one field around a pixel.
    template <class Body>
    HAMFLOW_INLINE void each(int y, int x, const Body& body) const {
        int n = 0;
        for (int dy = -1; dy <= 1; ++dy)
            body(n++, [=](const Plane& field) { return field.at(y + dy, x - 1); });
        for (int dy = -around_.half; dy <= around_.half; ++dy)
            for (int k = 0; k < around_.across; ++k)
                body(n++, [=](const Plane& field) {
                    return field.among(y + 2 * dy, x) - around_.half + k * width;
                });
    }

    Motion best(int y, int x, Motion own, Weights& weights) const {
        Motion winner = own, motion = own;
        compare(y, x, motion, weights, true);
        int next = first_open(weights);
        if (next < 0) return own;  // nothing to choose
        weigh(y, x, weights);
        float least = disagreement(weights) + data(y, x, own, weights) -
                      (p_.trust[at(y, x)] > 0 ? p_.margin : p_.untrusted_margin);
        // Costs are not negative: often one of them is enough.
        for (int k = 1; k < most && next >= 0 && least > 0; ++k) {
            const Offset& o = around_.offsets[next];
            motion = {*flow_[0].at(y + o.y, x + o.x), *flow_[1].at(y + o.y, x + o.x)};
            compare(y, x, motion, weights, false);
            float cost = disagreement(weights);
            if (cost < least) cost += data(y, x, motion, weights);
            if (cost < least) {
                least = cost;
                winner = motion;
            }
            next = first_open(weights);
        }
        return winner;
    }

    // How far a motion is from those of the neighbors, and whose is still another one.
    void compare(int y, int x, Motion motion, Weights& weights, bool first) const {
        each(y, x, [&](int n, const auto& place) HAMFLOW_INLINE_LAMBDA {
            const Floats apart = absolute(load<Floats>(place(flow_[0])) - motion.u) +
                                 absolute(load<Floats>(place(flow_[1])) - motion.v);
            const Ints other = apart >= same;
            weights.apart[n] = apart;
            weights.open[n] = first ? other : weights.open[n] & other;
        });
    }

    // The nearest neighbor with another motion than all candidates; -1 if there is none.
    int first_open(const Weights& weights) const {
        Ints least = Ints{} + Neighborhood::most_ranks;
        for (int n = 0; n < around_.vectors; ++n) {
            Ints rank;
            std::memcpy(&rank, &around_.rank[n * width], sizeof(rank));
            const Ints ranked = weights.open[n] ? rank : Ints{} + Neighborhood::most_ranks;
            least = ranked < least ? ranked : least;
        }
        int first = least[0];
        for (int k = 1; k < width; ++k) first = std::min(first, least[k]);
        return first == Neighborhood::most_ranks ? -1 : first;
    }

    void weigh(int y, int x, Weights& weights) const {
        const float r = *guide_[0].at(y, x), g = *guide_[1].at(y, x), b = *guide_[2].at(y, x);
        Floats total{}, data_total{};
        const float falling = -p_.color / colors;
        each(y, x, [&](int n, const auto& place) HAMFLOW_INLINE_LAMBDA {
            const Floats contrast = absolute(load<Floats>(place(guide_[0])) - r) +
                                    absolute(load<Floats>(place(guide_[1])) - g) +
                                    absolute(load<Floats>(place(guide_[2])) - b);
            const Floats similar = exponential(falling * contrast);
            const Floats factor = load<Floats>(place(factor_));
            if (n < 3) {
                const Ints patch = {-1, -1, -1, 0, 0, 0, 0, 0};
                weights.data[n] = patch & (factor_exists(y + n - 1, x)) ? similar : Floats{};
                data_total += weights.data[n];
            }
            weights.agreement[n] = similar * load<Floats>(&around_.nearness[n * width]) * factor;
            total += weights.agreement[n];
        });
        weights.total = std::max(sum_of(total), 1e-9f);
        weights.data_total = sum_of(data_total);
    }

    // Which of the pixels x - 1, x, x + 1 of a row there are.
    Ints factor_exists(int y, int x) const {
        const int row = y >= 0 && y < p_.h ? -1 : 0;
        return Ints{x > 0 ? row : 0, row, x + 1 < p_.w ? row : 0, 0, 0, 0, 0, 0};
    }

    float disagreement(const Weights& weights) const {
        Floats sum{};
        for (int n = 0; n < around_.vectors; ++n) {
            const Floats apart = weights.apart[n] / p_.apart;
            sum += weights.agreement[n] * (apart < 1 ? apart : Floats{} + 1.0f);
        }
        return p_.smoothness * sum_of(sum) / weights.total;
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
            return sum / weights.data_total;
        }
        // All 3 x 3 pixels lie equally between those of the other image.
        const int left = static_cast<int>(tx), top = static_cast<int>(ty);
        const float a = tx - static_cast<float>(left), b = ty - static_cast<float>(top);
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
                const float mean = (apart[0] + apart[1] + apart[2]) / (colors * p_.difference);
                sum += weights.data[dy][k] * (mean < 1 ? mean : 1);
            }
        }
        return sum / weights.data_total;
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
    Neighborhood around_;
    int margin_;
    Plane guide_[colors], factor_, flow_[2];
    Mask band_, changed_, scratch_;
};

void choose_motions(const Boundaries& problem) {
    if (problem.rounds > 0) Chooser(problem).run();
}
