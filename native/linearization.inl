// The data term after a warp: the second frame's features fetched back along the flow, and for each
// group of channels a quadratic form in the increment (du, dv).

constexpr int channels = feature_channels;
constexpr int terms = 6;       // of [du dv 1] J [du dv 1]^T: uu, uv, vv, ut, vt, tt
constexpr int chunk = 256;     // pixels whose forms stay in the fastest cache
constexpr int sum_rows = 5;         // that derivatives need
constexpr int difference_rows = 3;  // from the last one warped back to the one in the middle

// Where each pixel of a row is taken from: the pixel to the left and above, and the weights of four
// columns and rows (Catmull-Rom).
struct WarpTargets {
    explicit WarpTargets(int w)
        : left(w), top(w), inside(w), weights{Buffer<float>(w), Buffer<float>(w), Buffer<float>(w),
                                              Buffer<float>(w), Buffer<float>(w), Buffer<float>(w),
                                              Buffer<float>(w), Buffer<float>(w)} {}

    Buffer<int> left, top, inside;
    Buffer<float> weights[8];
};

void cubic_row(const float* fraction, int w, Buffer<float>* weights) {
    // `fraction` may be the first of them.
    float *c0 = weights[0].data(), *__restrict c1 = weights[1].data();
    float *__restrict c2 = weights[2].data(), *__restrict c3 = weights[3].data();
    HAMFLOW_INDEPENDENT
    for (int x = 0; x < w; ++x) {
        const float t = fraction[x], t2 = t * t, t3 = t2 * t;
        c1[x] = 0.5f * (3 * t3 - 5 * t2 + 2);
        c2[x] = 0.5f * (-3 * t3 + 4 * t2 + t);
        c3[x] = 0.5f * (t3 - t2);
        c0[x] = 0.5f * (-t3 + 2 * t2 - t);
    }
}

void find_targets(const Variational& p, int y, WarpTargets& targets) {
    const int w = p.w;
    const float* __restrict flow = p.flow + 2 * static_cast<std::size_t>(y) * w;
    int* __restrict left = targets.left.data();
    int* __restrict top = targets.top.data();
    int* __restrict inside = targets.inside.data();
    float *__restrict fx = targets.weights[0].data();  // overwritten by weights
    float *__restrict fy = targets.weights[4].data();
    const float row = static_cast<float>(y);
    const float last_x = static_cast<float>(w - 1), last_y = static_cast<float>(p.h - 1);
    HAMFLOW_INDEPENDENT
    for (int x = 0; x < w; ++x) {
        const float tx = static_cast<float>(x) + flow[2 * x], ty = row + flow[2 * x + 1];
        const int in = (tx >= 0 ? 1 : 0) & (ty >= 0 ? 1 : 0) & (tx <= last_x ? 1 : 0) &
                       (ty <= last_y ? 1 : 0);
        const float sx = in ? tx : 0, sy = in ? ty : 0;
        const int xx = static_cast<int>(sx), yy = static_cast<int>(sy);
        inside[x] = in;
        left[x] = xx;
        top[x] = yy;
        fx[x] = sx - static_cast<float>(xx);
        fy[x] = sy - static_cast<float>(yy);
    }
    cubic_row(fx, w, targets.weights);
    cubic_row(fy, w, targets.weights + 4);
}

// Sum and difference of the first frame's features and those of the second one, fetched back.
void warp_row(const Variational& p, int y, const WarpTargets& targets, float* __restrict sum,
              float* __restrict difference) {
    const std::size_t pitch = static_cast<std::size_t>(p.w) * channels;
    for (int x = 0; x < p.w; ++x) {
        const float* __restrict here = p.f0 + y * pitch + x * channels;
        float* __restrict s = sum + x * channels;
        float* __restrict d = difference + x * channels;
        if (!targets.inside[x]) {
            // There is no data term here, but derivatives of neighbors read this value.
            for (int f = 0; f < channels; ++f) s[f] = here[f] + here[f];
            for (int f = 0; f < channels; ++f) d[f] = 0;
            continue;
        }
        const int left = targets.left[x], top = targets.top[x];
        float cx[4], cy[4];
        for (int k = 0; k < 4; ++k) {
            cx[k] = targets.weights[k][x];
            cy[k] = targets.weights[4 + k][x];
        }
        const float* __restrict rows[4];
        float border[4][4 * channels];
        if (left >= 1 && left + 2 < p.w && top >= 1 && top + 2 < p.h) {
            for (int r = 0; r < 4; ++r)
                rows[r] = p.f1 + (top - 1 + r) * pitch + (left - 1) * channels;
        } else {
            for (int r = 0; r < 4; ++r) {
                const int yy = std::min(std::max(top - 1 + r, 0), p.h - 1);
                for (int k = 0; k < 4; ++k) {
                    const int xx = std::min(std::max(left - 1 + k, 0), p.w - 1);
                    std::memcpy(border[r] + k * channels, p.f1 + yy * pitch + xx * channels,
                                channels * sizeof(float));
                }
                rows[r] = border[r];
            }
        }
        const auto along = [&](int r, int f) HAMFLOW_INLINE_LAMBDA {
            return cx[0] * rows[r][f] + cx[1] * rows[r][f + channels] +
                   cx[2] * rows[r][f + 2 * channels] + cx[3] * rows[r][f + 3 * channels];
        };
        for (int f = 0; f < channels; ++f) {
            const float there = cy[0] * along(0, f) + cy[1] * along(1, f) + cy[2] * along(2, f) +
                                cy[3] * along(3, f);
            s[f] = here[f] + there;
            d[f] = there - here[f];
        }
    }
}

// From interleaved channels to one row per channel.
void planar(const float* __restrict from, int w, float* __restrict to,
            std::size_t pitch) {
    float* __restrict out[channels];
    for (int f = 0; f < channels; ++f) out[f] = to + f * pitch;
    HAMFLOW_INDEPENDENT
    for (int x = 0; x < w; ++x) {
        out[0][x] = from[8 * x];
        out[1][x] = from[8 * x + 1];
        out[2][x] = from[8 * x + 2];
        out[3][x] = from[8 * x + 3];
        out[4][x] = from[8 * x + 4];
        out[5][x] = from[8 * x + 5];
        out[6][x] = from[8 * x + 6];
        out[7][x] = from[8 * x + 7];
    }
}
static_assert(channels == 8, "planar() writes eight of them");

// The forms of a channel, added to those of its group. Five-point derivatives of the mean of both
// frames.
void add_channel(const float* __restrict mean, const float* const (&column)[4],
                 const float* __restrict difference, int count, float zeta2,
                 float (&form)[terms][chunk]) {
    const float *__restrict a2 = column[0], *__restrict a1 = column[1];
    const float *__restrict b1 = column[2], *__restrict b2 = column[3];
    HAMFLOW_INDEPENDENT
    for (int x = 0; x < count; ++x) {
        const float dx =
            (8 * (mean[x + 1] - mean[x - 1]) - (mean[x + 2] - mean[x - 2])) * (1.0f / 24);
        const float dy = (8 * (b1[x] - a1[x]) - (b2[x] - a2[x])) * (1.0f / 24);
        const float dt = difference[x];
        const float theta = 1 / (dx * dx + dy * dy + zeta2);
        const float tx = theta * dx, ty = theta * dy;
        form[0][x] += tx * dx;
        form[1][x] += tx * dy;
        form[2][x] += ty * dy;
        form[3][x] += tx * dt;
        form[4][x] += ty * dt;
        form[5][x] += theta * dt * dt;
    }
}

struct Forms {
    explicit Forms(const Fields& fields, int first) : weight(fields[first]) {
        for (auto& form : group)
            for (Field& term : form) term = fields[++first];
    }
    static constexpr int count = 2 * terms + 1;

    Field weight;  // of the data term; 0 where the flow leads outside
    Field group[2][terms];
};

// Call `row` for consecutive rows.
class Linearization {
   public:
    Linearization(const Variational& p, const Board& board, const Forms& forms, int begin)
        : p_(p), board_(board), forms_(forms), next_(std::max(begin - 2, 0)),
          pitch_(static_cast<std::size_t>(round_up(p.w + 2, lanes) + lanes)), targets_(p.w),
          interleaved_(2 * static_cast<std::size_t>(p.w) * channels),
          weight_(static_cast<std::size_t>(difference_rows) * p.w),
          sum_(sum_rows * channels * pitch_), difference_(difference_rows * channels * pitch_) {}

    void row(int y) {
        for (; next_ <= std::min(y + 2, p_.h - 1); ++next_) warp(next_);
        for (int x = 0; x < p_.w; x += chunk) linearize(y, x, std::min(chunk, p_.w - x));
        split_row(board_, y, weight(y), 1, forms_.weight);
    }

   private:
    float* sum(int y, int channel) {
        return sum_.data() + ((y % sum_rows) * channels + channel) * pitch_ + lanes;
    }
    float* difference(int y, int channel) {
        return difference_.data() + ((y % difference_rows) * channels + channel) * pitch_ + lanes;
    }
    float* weight(int y) {
        return weight_.data() + static_cast<std::size_t>(y % difference_rows) * p_.w;
    }

    void warp(int y) {
        const int w = p_.w;
        float* both = interleaved_.data();
        float* apart = both + static_cast<std::size_t>(w) * channels;
        find_targets(p_, y, targets_);
        warp_row(p_, y, targets_, both, apart);
        planar(both, w, sum(y, 0), pitch_);
        planar(apart, w, difference(y, 0), pitch_);
        for (int f = 0; f < compared_channels; ++f) {  // constant beyond the border
            float* row = sum(y, f);
            row[-1] = row[-2] = row[0];
            row[w] = row[w + 1] = row[w - 1];
        }
        const float* __restrict given = p_.weight + static_cast<std::size_t>(y) * w;
        const int* __restrict inside = targets_.inside.data();
        float* __restrict to = weight(y);
        for (int x = 0; x < w; ++x) to[x] = inside[x] ? given[x] : 0;
    }

    void linearize(int y, int x, int count) {
        float form[2][terms][chunk];
        for (auto& group : form)
            for (auto& term : group) std::fill_n(term, count, 0.0f);
        for (int f = 0; f < compared_channels; ++f) {
            const float* column[4];
            for (int k = 0; k < 4; ++k) {
                const int yy = y + k - (k < 2 ? 2 : 1);
                column[k] = sum(std::min(std::max(yy, 0), p_.h - 1), f) + x;
            }
            add_channel(sum(y, f) + x, column, difference(y, f) + x, count,
                        p_.zeta * p_.zeta, form[f >= p_.first_group]);
        }
        for (int g = 0; g < 2; ++g)
            for (int t = 0; t < terms; ++t)
                for (int parity = 0; parity < 2; ++parity) {
                    const float* __restrict from = form[g][t] + parity;
                    float* __restrict to =
                        forms_.group[g][t].row(y, board_.color(y, parity)) + x / 2;
                    for (int k = 0; k < (count - parity + 1) / 2; ++k) to[k] = from[2 * k];
                }
    }

    const Variational& p_;
    const Board& board_;
    const Forms& forms_;
    int next_;  // row to be warped
    std::size_t pitch_;
    WarpTargets targets_;
    Buffer<float> interleaved_, weight_, sum_, difference_;
};
