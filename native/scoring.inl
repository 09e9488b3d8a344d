// Features and scores of candidate motions: see scoring.hpp. Two passes: what is known of the
// targets of one candidate, over rows; then the network, sixteen pixels at a time.

// What a candidate finds at its target, and around it, in one word.
//   bit 0: inside of the image; 1: the way back ends here; 2: it ends elsewhere;
//   from bit 3 on, 7 bits: distance of the bits; then sums over the pixels around of
//   5 bits: inside; 5 bits: elsewhere; 11 bits: distances.
constexpr int distance_at = 3, insides_at = 10, elsewheres_at = 15, distances_at = 20;
// How many of the matches around agree with it: nearby in the lower half, in a wide square above.

// Rounded to even; clamped, as a place of a huge image may be rounded wrongly.
HAMFLOW_INLINE int whole(float at, int side) {
    constexpr float shift = 12582912.0f;  // 1.5 * 2^23: from there on floats are whole numbers
    const int i = static_cast<int>((at + shift) - shift);
    return i < 0 ? 0 : (i < side ? i : side - 1);
}

// Sums over squares, by sums over columns that move down and running totals of these along a row.
// Several sums side by side in one word: a difference of two of their totals is right even where
// these overflow into each other.
template <class Word, class Column>
HAMFLOW_INLINE void running_totals(int w, Word* totals, const Column& column) {
    Word total = 0;
    totals[0] = 0;
    for (int x = 0; x < w; ++x) totals[x + 1] = total += column(x);
}
template <class Word>
HAMFLOW_INLINE Word in_square(const Word* totals, int w, int x, int radius) {
    return totals[x + radius < w ? x + radius + 1 : w] - totals[x > radius ? x - radius : 0];
}

// Counts the pixels of a mask (0 or 1) in the near and in the wide square around each open pixel.
// prepare(y) is called once for each row, in their order, before row(y) is asked for; of these the
// last wide_rows are needed at a time.
constexpr int wide_rows = 2 * wide_radius + 2;

template <class Prepare, class Row>
HAMFLOW_INLINE void count_in_squares(const ScoringPlan& plan, const Prepare& prepare, const Row& row,
                                     std::uint32_t* counts) {
    const int h = plan.h, w = plan.w;
    Buffer<std::uint16_t> near(static_cast<std::size_t>(w), 0), wide(static_cast<std::size_t>(w), 0);
    Buffer<std::uint32_t> totals(static_cast<std::size_t>(w) + 1);
    const auto add = [&](Buffer<std::uint16_t>& column, int y, int sign) HAMFLOW_INLINE_LAMBDA {
        if (y < 0 || y >= h) return;
        std::uint16_t* __restrict c = column.data();
        const std::uint8_t* __restrict m = row(y);
        for (int x = 0; x < w; ++x) c[x] = static_cast<std::uint16_t>(c[x] + sign * m[x]);
    };
    for (int last = 0; last < h + wide_radius; ++last) {
        if (last < h) prepare(last);
        const int y = last - wide_radius;
        add(wide, last, 1);
        add(wide, last - wide_rows + 1, -1);
        add(near, y + support_radius, 1);
        add(near, y - support_radius - 1, -1);
        if (y < 0 || plan.row[y] == plan.row[y + 1]) continue;
        running_totals(w, totals.data(), [&](int x) HAMFLOW_INLINE_LAMBDA {
            return near[x] + (static_cast<std::uint32_t>(wide[x]) << 16);
        });
        for (int k = plan.row[y]; k < plan.row[y + 1]; ++k) {
            const int x = plan.column[k];
            counts[k] = (in_square(totals.data(), w, x, support_radius) & 0xffff) |
                        (in_square(totals.data(), w, x, wide_radius) & 0xffff0000u);
        }
    }
}

void count_support(const ScoringPlan& plan, const std::uint8_t* mask, std::uint32_t* counts) {
    count_in_squares(
        plan, [](int) HAMFLOW_INLINE_LAMBDA {},
        [&](int y) HAMFLOW_INLINE_LAMBDA { return mask + static_cast<std::size_t>(y) * plan.w; },
        counts);
}

// The targets of one candidate, row by row.
class CandidateTargets {
   public:
    CandidateTargets(const Scoring& p, const ScoringPlan& plan, int label)
        : p_(p), plan_(plan), h_(p.h), w_(p.w), width_(static_cast<std::size_t>(p.w)),
          motion_(p.motion + 2 * static_cast<std::size_t>(label) * p.h * p.w), x0_(width_),
          y0_(width_), to_(width_), inside_(width_), found_(rows * width_, 0), column_(width_, 0),
          totals_(width_ + 1) {}

    // Whether the trusted matches of a row agree with the candidate.
    void agree(int y, std::uint8_t* __restrict out) const {
        const std::size_t row = static_cast<std::size_t>(y) * width_;
        const float* __restrict m = motion_ + 2 * row;
        const float* __restrict first = p_.motion + 2 * row;
        const std::uint8_t* __restrict kept = p_.kept + row;
        for (int x = 0; x < w_; ++x) {
            const float du = m[2 * x] - first[2 * x], dv = m[2 * x + 1] - first[2 * x + 1];
            out[x] = (kept[x] != 0) & (du * du + dv * dv < 1);
        }
    }

    // Looks at the targets of the next row, and writes the words of the one that is now complete.
    void advance(int y, std::uint32_t* words) {
        if (y < h_) look(y);
        add(y, 1);
        add(y - 2 * near_radius - 1, ~0u);
        const int done = y - near_radius;
        if (done < 0 || plan_.row[done] == plan_.row[done + 1]) return;
        running_totals(w_, totals_.data(),
                       [&](int x) HAMFLOW_INLINE_LAMBDA { return column_[x]; });
        const std::uint32_t* own = found(done);
        for (int k = plan_.row[done]; k < plan_.row[done + 1]; ++k) {
            const int x = plan_.column[k];
            words[k] = in_square(totals_.data(), w_, x, near_radius) | (own[x] & ~summed);
        }
    }

   private:
    static constexpr int rows = 2 * near_radius + 2;
    // The upper fields are summed, the lower ones are those of the pixel itself.
    static constexpr std::uint32_t summed = ~((1u << insides_at) - 1);

    std::uint32_t* found(int y) { return found_.data() + static_cast<std::size_t>(y % rows) * width_; }

    void add(int y, std::uint32_t sign) {
        if (y < 0 || y >= h_) return;
        std::uint32_t* __restrict c = column_.data();
        const std::uint32_t* __restrict f = found(y);
        for (int x = 0; x < w_; ++x) c[x] += sign * (f[x] & summed);
    }

    void look(int y) {
        const float* __restrict m = motion_ + 2 * static_cast<std::size_t>(y) * width_;
        int* __restrict left = x0_.data();
        int* __restrict above = y0_.data();
        int* __restrict nearest = to_.data();
        std::uint8_t* __restrict in = inside_.data();
        const int h = h_, w = w_;
        std::uint32_t* f = found(y);
        std::memset(f, 0, width_ * sizeof *f);
        if (plan_.run_row[y] == plan_.run_row[y + 1]) return;
        for (int x = 0; x < w; ++x) {
            float tx = static_cast<float>(x) + m[2 * x], ty = static_cast<float>(y) + m[2 * x + 1];
            const bool good = (tx > -0.5f) & (tx < static_cast<float>(w) - 0.5f) & (ty > -0.5f) &
                              (ty < static_cast<float>(h) - 0.5f);
            tx = good ? tx : 0.0f, ty = good ? ty : 0.0f;
            in[x] = good;
            // From -.5 on, cutting the fraction off is the floor, clamped.
            left[x] = static_cast<int>(tx), above[x] = static_cast<int>(ty);
            nearest[x] = whole(ty, h) * w + whole(tx, w);
        }
        for (int r = plan_.run_row[y]; r < plan_.run_row[y + 1]; ++r)
            for (int x = plan_.runs[2 * r]; x < plan_.runs[2 * r + 1]; ++x)
                if (in[x]) f[x] = word(y, x, m[2 * x], m[2 * x + 1]);
    }

    HAMFLOW_INLINE std::uint32_t word(int y, int x, float u, float v) const {
        const std::uint64_t own = p_.bits0[static_cast<std::size_t>(y) * width_ + x];
        const std::uint64_t* a = p_.bits1 + static_cast<std::size_t>(y0_[x]) * width_ + x0_[x];
        const std::uint64_t* b = y0_[x] + 1 < h_ ? a + w_ : a;
        const int right = x0_[x] + 1 < w_;
        // Of the four pixels around the target, the one with the most similar bits.
        const int d0 = popcount64(own ^ a[0]), d1 = popcount64(own ^ a[right]);
        const int d2 = popcount64(own ^ b[0]), d3 = popcount64(own ^ b[right]);
        const int d01 = d0 < d1 ? d0 : d1, d23 = d2 < d3 ? d2 : d3;
        const std::uint32_t distance = static_cast<std::uint32_t>(d01 < d23 ? d01 : d23);
        std::uint32_t word = 1 | distance << distance_at | 1u << insides_at |
                             distance << distances_at;
        const std::size_t there = static_cast<std::size_t>(to_[x]);
        if (p_.back_trusted[there]) {
            const float du = p_.back[2 * there] + u, dv = p_.back[2 * there + 1] + v;
            const float away = du * du + dv * dv;
            word |= away <= 1.5f * 1.5f ? 2u : 0u;
            word |= away > 2.5f * 2.5f ? 4u | 1u << elsewheres_at : 0u;
        }
        return word;
    }

    const Scoring& p_;
    const ScoringPlan& plan_;
    int h_, w_;
    std::size_t width_;
    const float* motion_;
    Buffer<int> x0_, y0_, to_;
    Buffer<std::uint8_t> inside_;
    Buffer<std::uint32_t> found_, column_, totals_;
};

void describe_candidate(const Scoring& p, const ScoringPlan& plan, int label,
                        std::uint32_t* words, std::uint32_t* support) {
    const std::size_t width = static_cast<std::size_t>(p.w);
    CandidateTargets targets(p, plan, label);
    Buffer<std::uint8_t> agreeing(wide_rows * width);
    const auto row = [&](int y) HAMFLOW_INLINE_LAMBDA {
        return agreeing.data() + static_cast<std::size_t>(y % wide_rows) * width;
    };
    count_in_squares(
        plan,
        [&](int y) HAMFLOW_INLINE_LAMBDA {
            targets.agree(y, row(y));
            targets.advance(y, words);
        },
        row, support);
    for (int y = p.h; y < p.h + near_radius; ++y) targets.advance(y, words);
}

HAMFLOW_INLINE Floats field(const Ints& word, const Ints& mask) { return to_floats(word & mask); }

// Sixteen pixels from the number `at` on: most often they lie side by side.
struct PixelsOfScoring {
    int at, count;
    std::size_t index[lanes];
    bool dense;

    HAMFLOW_INLINE PixelsOfScoring(const ScoringPlan& plan, int first, int end)
        : at(first), count(end - first < lanes ? end - first : lanes) {
        for (int k = 0; k < lanes; ++k) index[k] = static_cast<std::size_t>(plan.pixel(at + k));
        dense = true;
        for (int k = 1; k < lanes; ++k) dense &= index[k] == index[0] + static_cast<std::size_t>(k);
    }
    template <int stride>
    HAMFLOW_INLINE Floats gathered(const float* from) const {
        float out[lanes];
        if (dense) {
            const float* row = from + index[0] * stride;
            for (int k = 0; k < lanes; ++k) out[k] = row[k * stride];
        } else {
            for (int k = 0; k < lanes; ++k) out[k] = from[index[k] * stride];
        }
        return Floats::load(out);
    }
    HAMFLOW_INLINE Ints words(const std::uint32_t* from) const {
        return Ints::load(reinterpret_cast<const std::int32_t*>(from + at));
    }
};

HAMFLOW_INLINE Floats beyond(const Floats& value, float low, float high) {
    return max(max(Floats(low) - value, value - Floats(high)), Floats(0.0f));
}

// Both inner layers rectify; four units at a time stay in registers.
HAMFLOW_INLINE const float* network_layer(const Floats* in, int inputs, const float* w, int units,
                                          Floats* out) {
    for (int j = 0; j < units; j += 4) {
        Floats a(w[j]), b(w[j + 1]), c(w[j + 2]), d(w[j + 3]);
        const float* row = w + units + j;
        for (int k = 0; k < inputs; ++k, row += units) {
            a += in[k] * Floats(row[0]), b += in[k] * Floats(row[1]);
            c += in[k] * Floats(row[2]), d += in[k] * Floats(row[3]);
        }
        const Floats zero(0.0f);
        out[j] = max(a, zero), out[j + 1] = max(b, zero);
        out[j + 2] = max(c, zero), out[j + 3] = max(d, zero);
    }
    return w + units * (inputs + 1);
}

// Pixels from the number `begin` to `end`.
void judge_candidates(const Scoring& p, const ScoringPlan& plan, int begin, int end) {
    const std::size_t n = static_cast<std::size_t>(p.h) * p.w;
    const int labels = p.labels;
    Buffer<Floats> bits(static_cast<std::size_t>(labels)), paths(static_cast<std::size_t>(labels));
    Buffer<Floats> units(static_cast<std::size_t>(2 * plan.units));
    Floats f[score_features];
    const Floats one(1.0f), zero(0.0f);
    const Ints bit(1), five(31);
    for (int at = begin; at < end; at += lanes) {
        const PixelsOfScoring pixels(plan, at, end);
        const Ints kept = pixels.words(plan.kept);
        const Floats near = field(kept, Ints(0xffff)) * Floats(1 / support_area);
        const Floats wide = to_floats(shifted_right<16>(kept)) * Floats(1 / wide_area);
        const Floats texture = log(pixels.gathered<1>(p.texture) + Floats(0.003f));
        const Floats first_u = pixels.gathered<2>(p.motion), first_v = pixels.gathered<2>(p.motion + 1);
        const Floats own_u = pixels.gathered<2>(p.matched), own_v = pixels.gathered<2>(p.matched + 1);
        Floats least_bits(64.0f), least_path(1e30f);
        for (int l = 0; l < labels; ++l) {
            const Ints word = pixels.words(plan.targets + plan.stride * static_cast<std::size_t>(l));
            const Floats inside = field(word, bit);
            const Floats insides = field(shifted_right<insides_at>(word), five);
            const Floats distances = field(shifted_right<distances_at>(word), Ints(2047));
            bits[l] = select(zero < inside, distances / max(insides, one), Floats(32.0f));
            const Floats path = pixels.gathered<1>(p.geodesic + n * static_cast<std::size_t>(l));
            paths[l] = log(min(path, Floats(1e9f)) + Floats(0.02f));
            least_bits = min(least_bits, bits[l]);
            if (l > 0 || labels == 1) least_path = min(least_path, paths[l]);
        }
        for (int l = 0; l < labels; ++l) {
            const std::size_t own = static_cast<std::size_t>(l);
            const Ints word = pixels.words(plan.targets + plan.stride * own);
            const Ints agreeing = pixels.words(plan.support + plan.stride * own);
            const Floats u = pixels.gathered<2>(p.motion + 2 * n * own);
            const Floats v = pixels.gathered<2>(p.motion + 2 * n * own + 1);
            f[0] = field(word, bit);
            f[1] = field(shifted_right<distance_at>(word), Ints(127)) * Floats(1.0f / 32);
            f[2] = bits[l] * Floats(1.0f / 32);
            f[3] = (bits[l] - least_bits) * Floats(1.0f / 16);
            f[4] = field(shifted_right<1>(word), bit);
            f[5] = field(shifted_right<2>(word), bit);
            f[6] = field(shifted_right<elsewheres_at>(word), five) * Floats(1 / near_area);
            f[7] = paths[l];
            f[8] = paths[l] - least_path;
            const auto distance = [&](const Floats& a, const Floats& b) HAMFLOW_INLINE_LAMBDA {
                const Floats du = u - a, dv = v - b;
                return log(one + sqrt(du * du + dv * dv));
            };
            f[9] = distance(first_u, first_v);
            f[10] = distance(own_u, own_v);
            f[11] = log(one + (beyond(u, p.low[0], p.high[0]) + beyond(v, p.low[1], p.high[1])));
            const Floats a = field(agreeing, Ints(0xffff)) * Floats(1 / support_area);
            const Floats b = to_floats(shifted_right<16>(agreeing)) * Floats(1 / wide_area);
            f[12] = (a + Floats(0.002f)) / (near + Floats(0.004f));
            f[13] = (b + Floats(0.002f)) / (wide + Floats(0.004f));
            f[14] = wide;
            f[15] = l == 0 ? one : zero;
            f[16] = paths[0];
            f[17] = Floats(p.size[l]);
            f[18] = texture;
            f[19] = field(shifted_right<insides_at>(word), five) * Floats(1 / near_area);
            float out[lanes];
            if (p.features != nullptr)
                for (int k = 0; k < score_features; ++k) {
                    f[k].store(out);
                    float* to = p.features + (own * static_cast<std::size_t>(p.stride) + static_cast<std::size_t>(k)) *
                                                 static_cast<std::size_t>(p.pixels);
                    for (int j = 0; j < pixels.count; ++j) to[plan.number[at + j]] = out[j];
                }
            if (p.score == nullptr) continue;
            for (int k = 0; k < score_features; ++k)
                f[k] = min(max(f[k], Floats(p.network[k])), Floats(p.network[score_features + k]));
            const float* w = network_layer(f, score_features, plan.network, plan.units, units.data());
            w = network_layer(units.data(), plan.units, w, plan.units, units.data() + plan.units);
            Floats score = zero;
            for (int j = 0; j < plan.units; ++j) score += units[plan.units + j] * Floats(w[j]);
            score.store(out);
            for (int j = 0; j < pixels.count; ++j)
                p.score[static_cast<std::size_t>(plan.number[at + j]) * labels + own] = out[j];
        }
    }
}
