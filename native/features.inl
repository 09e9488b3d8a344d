// What the data term compares, row by row.

class FeatureRows {
   public:
    explicit FeatureRows(const Features& p)
        : p_(p), margin_(round_up(std::max(p.radius, 2), lanes)),
          pitch_(static_cast<std::size_t>(round_up(p.w + 2 * margin_, lanes))), blurred_(pitch_),
          ring_(ring * planes * pitch_) {}

    void rows(int begin, int end) {
        int next = std::max(begin - 2, 0);
        for (int y = begin; y < end; ++y) {
            for (; next <= std::min(y + 2, p_.h - 1); ++next) smooth(next);
            write(y);
        }
    }

   private:
    static constexpr int ring = 8, colors = 3;
    enum { mean = colors, against, planes };

    float* plane(int y, int k) {
        return ring_.data() + ((y % ring) * planes + k) * pitch_ + margin_;
    }

    void smooth(int y) {
        const int w = p_.w;
        for (int c = 0; c < colors; ++c) {
            float* __restrict column = blurred_.data() + margin_;
            std::fill_n(column, w, 0.0f);
            for (int k = -p_.radius; k <= p_.radius; ++k) {
                const int yy = std::min(std::max(y + k, 0), p_.h - 1);
                const float* __restrict from =
                    p_.image + (static_cast<std::size_t>(yy) * w) * colors + c;
                const float weight = p_.smoothing[k + p_.radius];
                for (int x = 0; x < w; ++x) column[x] += weight * from[colors * x];
            }
            continue_row(column, p_.radius);
            float* __restrict to = plane(y, c);
            std::fill_n(to, w, 0.0f);
            for (int k = -p_.radius; k <= p_.radius; ++k) {
                const float weight = p_.smoothing[k + p_.radius];
                for (int x = 0; x < w; ++x) to[x] += weight * column[x + k];
            }
        }
        const float *__restrict r = plane(y, 0), *__restrict g = plane(y, 1);
        const float* __restrict b = plane(y, 2);
        float *__restrict m = plane(y, mean), *__restrict a = plane(y, against);
        for (int x = 0; x < w; ++x) {
            m[x] = (r[x] + g[x] + b[x]) * (1.0f / colors);
            a[x] = r[x] - b[x];
        }
        continue_row(m, 2);
        continue_row(a, 2);
    }

    void continue_row(float* row, int margin) const {
        std::fill_n(row - margin, margin, row[0]);
        std::fill_n(row + p_.w, margin, row[p_.w - 1]);
    }

    void write(int y) {
        const int w = p_.w;
        const float *__restrict r = plane(y, 0), *__restrict g = plane(y, 1);
        const float* __restrict b = plane(y, 2);
        const float *__restrict m = plane(y, mean), *__restrict a = plane(y, against);
        const float *__restrict mc[4], *__restrict ac[4];
        for (int k = 0; k < 4; ++k) {
            const int yy = std::min(std::max(y + k - (k < 2 ? 2 : 1), 0), p_.h - 1);
            mc[k] = plane(yy, mean);
            ac[k] = plane(yy, against);
        }
        float* __restrict out = p_.out + static_cast<std::size_t>(y) * w * channels;
        const auto slope = [](float a2, float a1, float b1, float b2) HAMFLOW_INLINE_LAMBDA {
            return (8 * (b1 - a1) - (b2 - a2)) * (1.0f / 12);
        };
        const float *__restrict m0 = mc[0], *__restrict m1 = mc[1];
        const float *__restrict m2 = mc[2], *__restrict m3 = mc[3];
        const float *__restrict a0 = ac[0], *__restrict a1 = ac[1];
        const float *__restrict a2 = ac[2], *__restrict a3 = ac[3];
        HAMFLOW_INDEPENDENT
        for (int x = 0; x < w; ++x) {
            out[8 * x] = r[x];
            out[8 * x + 1] = g[x];
            out[8 * x + 2] = b[x];
            out[8 * x + 3] = slope(m[x - 2], m[x - 1], m[x + 1], m[x + 2]);
            out[8 * x + 4] = slope(m0[x], m1[x], m2[x], m3[x]);
            out[8 * x + 5] = slope(a[x - 2], a[x - 1], a[x + 1], a[x + 2]);
            out[8 * x + 6] = slope(a0[x], a1[x], a2[x], a3[x]);
            out[8 * x + 7] = 0;
        }
    }

    const Features& p_;
    int margin_;
    std::size_t pitch_;
    Buffer<float> blurred_, ring_;
};

void compute_features(const Features& problem) {
    for_blocks(RowBlocks(problem.h, 16), [&](int begin, int end) {
        FeatureRows(problem).rows(begin, end);
    });
}
