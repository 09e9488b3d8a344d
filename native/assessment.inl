// Forward against backward flow, and how far a flow can be trusted: see assessment.hpp. Rows from
// `begin` to `end`.

// A place between four pixels, from a pixel that a flow starts from.
struct Place {
    const float* upper;   // the pixel on the left above
    std::ptrdiff_t right, below;  // to the next ones
    float share_x, share_y;

    // `u` and `v` lead to the inside. Taken apart before x and y are added, they lose no digits; a
    // place on a pixel does not use the next one, which may be outside, or NaN.
    HAMFLOW_INLINE Place(const float* image, int channels, int w, int x, int y, float u, float v) {
        int whole_u = static_cast<int>(u), whole_v = static_cast<int>(v);
        whole_u -= static_cast<float>(whole_u) > u, whole_v -= static_cast<float>(whole_v) > v;
        share_x = u - static_cast<float>(whole_u), share_y = v - static_cast<float>(whole_v);
        upper = image + (static_cast<std::ptrdiff_t>(y + whole_v) * w + x + whole_u) * channels;
        right = share_x > 0 ? channels : 0;
        below = share_y > 0 ? static_cast<std::ptrdiff_t>(w) * channels : 0;
    }
    HAMFLOW_INLINE float value(int channel) const {
        const float *a = upper + channel, *b = a + below;
        const float above = a[0] * (1 - share_x) + a[right] * share_x;
        const float under = b[0] * (1 - share_x) + b[right] * share_x;
        return above * (1 - share_y) + under * share_y;
    }
};

// The displacement within the image, if it is at most half a pixel outside: a pixel reaches half a
// pixel from its center, and the outermost ones at rest must not be outside for some rounding.
HAMFLOW_INLINE bool within(float& u, int at, int side) {
    const float low = static_cast<float>(-at), high = static_cast<float>(side - 1 - at);
    const float inner = u < low ? low : (u > high ? high : u);
    const float off = u - inner;
    const bool good = off <= 0.5f && off >= -0.5f;  // not for NaN
    u = inner;
    return good;
}

// Squared disagreement (infinite outside) and sum of the squared lengths of a row.
HAMFLOW_INLINE void compare_ways(const ThereAndBack& p, int y, float* apart2, float* lengths) {
    for (int x = 0; x < p.w; ++x) {
        const float* f = p.flow + 2 * (static_cast<std::size_t>(y) * p.w + x);
        float u = f[0], v = f[1];
        apart2[x] = __builtin_inff();
        lengths[x] = 0;
        if (!within(u, x, p.w) || !within(v, y, p.h)) continue;
        const Place there(p.backward, 2, p.w, x, y, u, v);
        const float back_u = there.value(0), back_v = there.value(1);
        const float du = f[0] + back_u, dv = f[1] + back_v;
        apart2[x] = du * du + dv * dv;
        lengths[x] = (f[0] * f[0] + f[1] * f[1]) + (back_u * back_u + back_v * back_v);
    }
}

HAMFLOW_INLINE void write_ways(const ThereAndBack& p, int y, const float* apart2,
                               const float* lengths) {
    const std::size_t row = static_cast<std::size_t>(y) * p.w;
    if (p.hidden != nullptr)
        for (int x = 0; x < p.w; ++x)  // unknown flow compares with nothing
            p.hidden[row + x] = !(apart2[x] <= p.relative * lengths[x] + p.absolute);
    if (p.apart != nullptr)
        for (int x = 0; x < p.w; ++x) p.apart[row + x] = __builtin_sqrtf(apart2[x]);
}

void there_and_back(const ThereAndBack& p, int begin, int end) {
    Buffer<float> apart2(static_cast<std::size_t>(p.w)), lengths(static_cast<std::size_t>(p.w));
    for (int y = begin; y < end; ++y) {
        compare_ways(p, y, apart2.data(), lengths.data());
        write_ways(p, y, apart2.data(), lengths.data());
    }
}

// What is known of the pixels of a row by themselves; each kind of evidence has a row of `pitch`.
HAMFLOW_INLINE void own_rows(const Assessment& p, int y, const float* apart2, std::size_t pitch,
                             float* rows) {
    const ThereAndBack& ways = p.ways;
    const int w = ways.w, h = ways.h;
    float *apart = rows, *outside = rows + pitch, *length = rows + 2 * pitch;
    float *color = rows + 3 * pitch, *gradient = rows + 4 * pitch, *slope = rows + 5 * pitch;
    float *there_slope = rows + 6 * pitch, *vary = rows + 7 * pitch, *bright = rows + 8 * pitch;
    float* cover = rows + 9 * pitch;
    const auto size = [](float a, float b) HAMFLOW_INLINE_LAMBDA {
        return __builtin_sqrtf(a * a + b * b);
    };
    for (int x = 0; x < w; ++x) {
        const std::size_t i = static_cast<std::size_t>(y) * w + x;
        const float* f = ways.flow + 2 * i;
        const float* a = p.first + i * feature_channels;
        float u = f[0], v = f[1];
        const bool inside_u = within(u, x, w), inside_v = within(v, y, h);  // both are clamped
        const bool known = inside_u && inside_v;
        const float most = 1e6f;  // of lengths, so that their squares are finite
        float off = size(f[0] - u, f[1] - v);
        off = off < most ? off : most;
        outside[x] = known ? 0 : off * p.unit + 1;
        // What leaves the image disagrees with nothing.
        apart[x] = known ? __builtin_sqrtf(apart2[x]) * p.unit : 0;
        float sum_colors = 0, sum_gradients = 0, slope_there = 0;
        if (known) {
            const Place there(p.second, feature_channels, w, x, y, u, v);
            float b[7];
            for (int c = 0; c < 7; ++c) b[c] = there.value(c);
            for (int c = 0; c < 3; ++c) sum_colors += __builtin_fabsf(a[c] - b[c]);
            for (int c = 3; c < 7; ++c) sum_gradients += __builtin_fabsf(a[c] - b[c]);
            slope_there = size(b[3], b[4]);
        }
        color[x] = sum_colors * (1.0f / 3);
        gradient[x] = sum_gradients * (1.0f / 4);
        slope[x] = size(a[3], a[4]);
        there_slope[x] = slope_there;
        const float long_ = size(f[0], f[1]) * p.unit;
        length[x] = long_ < most ? long_ : most;
        float jump = 0;
        const std::ptrdiff_t next[4] = {x > 0 ? -2 : 0, x + 1 < w ? 2 : 0, y > 0 ? -2 * w : 0,
                                        y + 1 < h ? 2 * w : 0};
        for (const std::ptrdiff_t step : next) {
            const float du = __builtin_fabsf(f[step] - f[0]), dv = __builtin_fabsf(f[step + 1] - f[1]);
            jump = du > jump ? du : jump;
            jump = dv > jump ? dv : jump;
        }
        vary[x] = (jump < most ? jump : most) * p.unit;
        bright[x] = (a[0] + a[1] + a[2]) * (1.0f / 3);
        cover[x] = p.cover[i] < 2 ? p.cover[i] : 2;
    }
    // Logarithms, of what may be arbitrarily small or large.
    const auto logarithms = [&](float* row, float floor, float most) HAMFLOW_INLINE_LAMBDA {
        for (std::size_t x = 0; x < pitch; x += lanes)
            log(min(Floats::load(row + x), Floats(most)) + Floats(floor)).store(row + x);
    };
    logarithms(apart, 0.05f, 100.0f);
    logarithms(length, 0.1f, 1e6f);
    logarithms(color, 0.002f, 1.0f);
    logarithms(gradient, 0.001f, 1.0f);
    logarithms(slope, 0.002f, 1.0f);
    logarithms(there_slope, 0.002f, 1.0f);
    logarithms(vary, 0.02f, 1e6f);
    for (std::size_t x = 0; x < pitch; x += lanes) {
        const Floats off = Floats::load(outside + x), one(1.0f);
        select(Floats(0.0f) < off, one + log(max(off, one)), Floats(0.0f)).store(outside + x);
    }
}

// Between the centers of boxes, as upsample_linear does it: where, and how far.
struct BetweenBoxes {
    int before, after;
    float share;

    HAMFLOW_INLINE BetweenBoxes(int at, int scale, int count) {
        float place = (static_cast<float>(at) + 0.5f) / static_cast<float>(scale) - 0.5f;
        const float last = static_cast<float>(count - 1);
        place = place < 0 ? 0 : (place > last ? last : place);
        before = static_cast<int>(place);
        after = before + 1 < count ? before + 1 : before;
        share = place - static_cast<float>(before);
    }
};

// What is known of the surroundings, interpolated.
HAMFLOW_INLINE void coarse_rows(const Assessment& p, int y, float* between, std::size_t pitch,
                                float* rows) {
    constexpr int n = hamflow::coarse_evidence;
    const BetweenBoxes row(y, p.scale, p.coarse_h);
    const std::size_t count = static_cast<std::size_t>(p.coarse_w) * n;
    const float* lower = p.coarse + static_cast<std::size_t>(row.before) * count;
    const float* upper = p.coarse + static_cast<std::size_t>(row.after) * count;
    for (std::size_t k = 0; k < count; ++k) between[k] = lower[k] + row.share * (upper[k] - lower[k]);
    for (int x = 0; x < p.ways.w; ++x) {
        const BetweenBoxes column(x, p.scale, p.coarse_w);
        const float *a = between + n * column.before, *b = between + n * column.after;
        for (int k = 0; k < n; ++k)
            rows[static_cast<std::size_t>(k) * pitch + x] = a[k] + column.share * (b[k] - a[k]);
    }
}

// Sum of units that all grow with their input: max(z, 0) in the first half, min(z, 0) in the second.
HAMFLOW_INLINE const float* assessment_network(const Floats* in, const float* w, Floats& result) {
    constexpr int units = assessment_units;
    const float* out = w + units * (all_evidence + 1);
    const Floats zero(0.0f);
    result = Floats(out[units]);
    for (int j = 0; j < units; j += 4) {
        Floats z[4] = {Floats(w[j]), Floats(w[j + 1]), Floats(w[j + 2]), Floats(w[j + 3])};
        const float* row = w + units + j;
        for (int k = 0; k < all_evidence; ++k, row += units)
            for (int m = 0; m < 4; ++m) z[m] += in[k] * Floats(row[m]);
        for (int m = 0; m < 4; ++m)
            result += Floats(out[j + m]) * (j < units / 2 ? max(z[m], zero) : min(z[m], zero));
    }
    return out + units + 1;
}

// Logarithm of the disagreement, a tenth of a pixel, that hidden pixels have at least.
constexpr float least_apart = -1.8971200f;

void assess(const Assessment& p, int begin, int end) {
    const ThereAndBack& ways = p.ways;
    const std::size_t w = static_cast<std::size_t>(ways.w);
    const std::size_t pitch = static_cast<std::size_t>(round_up(ways.w, lanes));
    Buffer<float> apart2(pitch, 0.0f), lengths(pitch, 0.0f), rows(pitch * all_evidence, 0.0f);
    Buffer<float> certain(pitch), hidden(pitch);
    Buffer<float> between(static_cast<std::size_t>(p.coarse_w) * hamflow::coarse_evidence);
    for (std::size_t x = 0; x < pitch; ++x) rows[pitch * (all_evidence - 1) + x] = p.size;
    const Floats one(1.0f), zero(0.0f);
    for (int y = begin; y < end; ++y) {
        compare_ways(ways, y, apart2.data(), lengths.data());
        own_rows(p, y, apart2.data(), pitch, rows.data());
        coarse_rows(p, y, between.data(), pitch, rows.data() + pitch * own_evidence);
        const std::size_t first = static_cast<std::size_t>(y) * w;
        if (p.evidence != nullptr)
            for (std::size_t x = 0; x < w; ++x)
                for (std::size_t k = 0; k < all_evidence; ++k)
                    p.evidence[(first + x) * all_evidence + k] = rows[k * pitch + x];
        for (std::size_t x = 0; x < pitch; x += lanes) {
            Floats in[all_evidence];
            for (std::size_t k = 0; k < all_evidence; ++k)
                in[k] = min(max(Floats::load(&rows[k * pitch + x]), Floats(p.network[k])),
                            Floats(p.network[all_evidence + k]));
            Floats error, occlusion;
            const float* next = assessment_network(in, p.network + 2 * all_evidence, error);
            assessment_network(in, next, occlusion);
            (one / (one + exp(min(error, Floats(p.network[assessment_weights - 1]))))).store(&certain[x]);
            const Floats outside = Floats::load(&rows[pitch + x]), no(-1.0f);
            // The way back from a hidden pixel does not end where it began.
            const Floats apart = Floats::load(&rows[x]);
            const Floats inside = select(apart < Floats(least_apart), no, max(min(occlusion, one), no));
            select(zero < outside, one, inside).store(&hidden[x]);
        }
        std::memcpy(p.confidence + first, certain.data(), w * sizeof(float));
        std::memcpy(p.occlusion + first, hidden.data(), w * sizeof(float));
    }
}
