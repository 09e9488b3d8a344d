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

// Mean absolute difference of the colors at both ends of the flow; 0 is seen outside.
HAMFLOW_INLINE void compare_colors(const Assessment& p, int y, float* out) {
    const ThereAndBack& ways = p.ways;
    const int w = ways.w;
    for (int x = 0; x < w; ++x) {
        const std::size_t i = static_cast<std::size_t>(y) * w + x;
        const float u = ways.flow[2 * i], v = ways.flow[2 * i + 1];
        const float* first = p.first + i * static_cast<std::size_t>(p.channels);
        float sum = 0;
        if (u >= static_cast<float>(-x) && u <= static_cast<float>(w - 1 - x) &&
            v >= static_cast<float>(-y) && v <= static_cast<float>(ways.h - 1 - y)) {
            const Place there(p.second, p.channels, w, x, y, u, v);
            for (int c = 0; c < 3; ++c) sum += __builtin_fabsf(first[c] - there.value(c));
        } else {
            for (int c = 0; c < 3; ++c) sum += __builtin_fabsf(first[c]);
        }
        out[x] = sum * (1.0f / 3);
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

void assess(const Assessment& p, int begin, int end) {
    const ThereAndBack& ways = p.ways;
    const std::size_t padded = static_cast<std::size_t>(round_up(ways.w, lanes));
    Buffer<float> apart2(padded, 0.0f), lengths(padded, 0.0f), colors(padded, 0.0f);
    Buffer<float> distance(padded, 0.0f), result(padded);
    Buffer<float> between(static_cast<std::size_t>(p.coarse_w));
    for (int y = begin; y < end; ++y) {
        compare_ways(ways, y, apart2.data(), lengths.data());
        write_ways(ways, y, apart2.data(), lengths.data());
        compare_colors(p, y, colors.data());
        const BetweenBoxes row(y, p.scale, p.coarse_h);
        const float* lower = p.distance + static_cast<std::size_t>(row.before) * p.coarse_w;
        const float* upper = p.distance + static_cast<std::size_t>(row.after) * p.coarse_w;
        for (int x = 0; x < p.coarse_w; ++x)
            between[x] = lower[x] + row.share * (upper[x] - lower[x]);
        for (int x = 0; x < ways.w; ++x) {
            const BetweenBoxes column(x, p.scale, p.coarse_w);
            const float at = between[column.before];
            distance[x] = at + column.share * (between[column.after] - at);
        }
        const Floats floor(p.floor), one(1.0f), zero(0.0f);
        for (std::size_t x = 0; x < padded; x += lanes) {
            const Floats apart = min(sqrt(Floats::load(&apart2[x])), Floats(p.most));
            const Floats expected =
                exp(Floats(p.constant) + Floats(p.weights[0]) * log(apart + floor) +
                    Floats(p.weights[1]) * log(Floats::load(&distance[x]) + Floats(0.01f)) +
                    Floats(p.weights[2]) * log(Floats::load(&colors[x]) + Floats(0.002f)));
            (one / (one + max(expected - floor, zero))).store(&result[x]);
        }
        std::memcpy(p.confidence + static_cast<std::size_t>(y) * ways.w, result.data(),
                    static_cast<std::size_t>(ways.w) * sizeof(float));
    }
}
