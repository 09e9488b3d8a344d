// The model FQ (section 3.1 of the paper): the float cost at the inner argmins that the bits gave
// (a gather of descriptors), and its exact gradient (a gather and a scatter-add), in
// O(|Omega| D m). No sum of floats depends on the number of threads: one thread sums up the
// gradient of a target, in the order of the sources.

// The targets of one pixel's matches, as indices of pixels, with the place of each in the
// volumes; those outside of the image are left out.
struct Matches {
    Buffer<std::size_t> target;
    Buffer<int> label;  // < du: a label u; else du + a label v
    int count = 0;

    explicit Matches(const Window& win)
        : target(std::size_t(win.du) + win.dv), label(std::size_t(win.du) + win.dv) {}

    // Only targets in the rows [row0, row1).
    void collect(const PhiPair& p, const Window& win, int x, int y, const std::int16_t* v_hat,
                 const std::int16_t* u_hat, int row0, int row1) {
        const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
        const LabelRange u = u_labels(win, x, p.w), v = v_labels(win, y, p.h);
        int n = 0;
        for (int k = u.lo; k < u.hi; ++k) {
            const int row = y + win.v0 + v_hat[i * win.du + k];
            target[n] = static_cast<std::size_t>(row) * p.w + (x + win.u0 + k);
            label[n] = k;
            n += row >= row0 && row < row1;  // branch-free: about half are kept in a scatter
        }
        for (int k = v.lo; k < v.hi; ++k) {
            const int row = y + win.v0 + k;
            if (row < row0 || row >= row1) continue;
            const int column = x + win.u0 + u_hat[i * win.dv + k];
            target[n] = static_cast<std::size_t>(row) * p.w + column;
            label[n] = win.du + k;
            n += column >= 0 && column < p.w;
        }
        count = n;
    }
};

// Descriptors are fetched from all over the window: too far for the hardware, so ask in time (12
// ahead beat 6 and 20 by a quarter).
constexpr int prefetch_matches = 12;

// Source rows between two looks for Ctrl-C: few enough for that, many enough that collecting
// matches for several bands stays cheap.
constexpr int scatter_rows = 128;

HAMFLOW_INLINE void prefetch_descriptor(const float* p, int m) {
    for (int k = 0; k < m; k += 16) prefetch(p + k);
}

// M = 64, or 0 for any m.
template <int M>
HAMFLOW_INLINE float scalar_product(const float* a, const float* b, int m) {
    constexpr int width = Floats::width;
    constexpr int chains = 4;
    const int size = M ? M : m;
    typename Floats::F sum[chains];
    unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA { sum[c] = Floats::zero(); });
    int k = 0;
    for (; k + chains * width <= size; k += chains * width)
        unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA {
            sum[c] = Floats::fma(Floats::loadu(a + k + c * width),
                                 Floats::loadu(b + k + c * width), sum[c]);
        });
    float lanes[width];
    Floats::storeu(lanes, Floats::add(Floats::add(sum[0], sum[1]), Floats::add(sum[2], sum[3])));
    float total = 0.0f;
    for (int c = 0; c < width; ++c) total += lanes[c];
    for (; k < size; ++k) total += a[k] * b[k];
    return total;
}

// to += factor * from
template <int M>
HAMFLOW_INLINE void add_multiple(float* to, float factor, const float* from, int m) {
    constexpr int width = Floats::width;
    const int size = M ? M : m;
    const typename Floats::F f = Floats::set1(factor);
    int k = 0;
    for (; k + width <= size; k += width)
        Floats::storeu(to + k, Floats::fma(f, Floats::loadu(from + k), Floats::loadu(to + k)));
    for (; k < size; ++k) to[k] += factor * from[k];
}

// to = sum over the matches of weight(label) * phi1[target], with the sums in registers for M = 64.
template <int M, class Weight>
HAMFLOW_INLINE void weighted_sum(const PhiPair& p, const Matches& matches, const Weight& weight,
                                 float* to) {
    constexpr int width = Floats::width, vectors = M / width;
    typename Floats::F sum[vectors + 1];
    if (M)
        unroll<vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA { sum[j] = Floats::zero(); });
    else
        for (int k = 0; k < p.m; ++k) to[k] = 0.0f;
    for (int n = 0; n < matches.count; ++n) {
        const int ahead = std::min(n + prefetch_matches, matches.count - 1);
        prefetch_descriptor(p.phi1 + matches.target[ahead] * p.m, M ? M : p.m);
        const float* from = p.phi1 + matches.target[n] * p.m;
        const float factor = weight(matches.label[n]);
        if (M) {
            const typename Floats::F f = Floats::set1(factor);
            unroll<vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                sum[j] = Floats::fma(f, Floats::loadu(from + j * width), sum[j]);
            });
        } else {
            add_multiple<0>(to, factor, from, p.m);
        }
    }
    if (M)
        unroll<vectors>(
            [&](auto j) HAMFLOW_INLINE_LAMBDA { Floats::storeu(to + j * width, sum[j]); });
}

template <int M>
void gather_any(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_hat,
                const std::int16_t* u_hat, float* cu, float* cv) {
    parallel_for(p.h, [&](int y) {
        Matches matches(win);
        for (int x = 0; x < p.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
            float* to_u = cu + i * win.du;
            float* to_v = cv + i * win.dv;
            for (int k = 0; k < win.du; ++k) to_u[k] = outside;
            for (int k = 0; k < win.dv; ++k) to_v[k] = outside;
            matches.collect(p, win, x, y, v_hat, u_hat, 0, p.h);
            for (int n = 0; n < matches.count; ++n) {
                const int ahead = std::min(n + prefetch_matches, matches.count - 1);
                prefetch_descriptor(p.phi1 + matches.target[ahead] * p.m, M ? M : p.m);
                const float s = -scalar_product<M>(p.phi0 + i * p.m,
                                                   p.phi1 + matches.target[n] * p.m, p.m);
                const int k = matches.label[n];
                (k < win.du ? to_u[k] : to_v[k - win.du]) = s;
            }
        }
    });
}

template <int M>
void scatter_any(const PhiPair& p, const Window& win, const std::int16_t* v_hat,
                 const std::int16_t* u_hat, const float* grad_cu, const float* grad_cv,
                 float* grad_phi0, float* grad_phi1) {
    const auto grad = [&](std::size_t i, int label) HAMFLOW_INLINE_LAMBDA {
        return label < win.du ? grad_cu[i * win.du + label]
                              : grad_cv[i * win.dv + label - win.du];
    };
    // The sources: rows of phi0 are independent.
    parallel_for(p.h, [&](int y) {
        Matches matches(win);
        for (int x = 0; x < p.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
            matches.collect(p, win, x, y, v_hat, u_hat, 0, p.h);
            weighted_sum<M>(p, matches, [&](int label) { return -grad(i, label); },
                            grad_phi0 + i * p.m);
        }
    });
    // The targets: in each block of source rows, each thread owns a band of the rows that they
    // may hit. Blocks follow one another, so a target's terms are added in the sources' order
    // whatever the bands are.
    const std::size_t row_size = static_cast<std::size_t>(p.w) * p.m;
    parallel_for(p.h, [&](int y) {
        std::memset(grad_phi1 + y * row_size, 0, row_size * sizeof(float));
    });
    const auto clamp_row = [&](long long y) {
        return static_cast<int>(std::clamp<long long>(y, 0, p.h));
    };
    for (int y0 = 0; y0 < p.h; y0 += scatter_rows) {
        const int y1 = std::min(p.h, y0 + scatter_rows);
        const int first = clamp_row(static_cast<long long>(y0) + win.v0);
        const int hit = clamp_row(static_cast<long long>(y1) + win.v0 + win.dv - 1) - first;
        const int bands = std::min(hit, get_num_threads());
        parallel_for(bands, [&](int band) {
            const int row0 = first + static_cast<int>(static_cast<long long>(hit) * band / bands);
            const int row1 =
                first + static_cast<int>(static_cast<long long>(hit) * (band + 1) / bands);
            Matches matches(win);
            for (int y = y0; y < y1; ++y) {
                for (int x = 0; x < p.w; ++x) {
                    const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
                    matches.collect(p, win, x, y, v_hat, u_hat, row0, row1);
                    for (int n = 0; n < matches.count; ++n) {
                        const int ahead = std::min(n + prefetch_matches, matches.count - 1);
                        prefetch_descriptor(grad_phi1 + matches.target[ahead] * p.m, M ? M : p.m);
                        add_multiple<M>(grad_phi1 + matches.target[n] * p.m,
                                        -grad(i, matches.label[n]), p.phi0 + i * p.m, p.m);
                    }
                }
            }
        });
    }
}

void gather(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_hat,
            const std::int16_t* u_hat, float* cu, float* cv) {
    if (p.m == 64)
        gather_any<64>(p, win, outside, v_hat, u_hat, cu, cv);
    else
        gather_any<0>(p, win, outside, v_hat, u_hat, cu, cv);
}

void scatter(const PhiPair& p, const Window& win, const std::int16_t* v_hat,
             const std::int16_t* u_hat, const float* grad_cu, const float* grad_cv,
             float* grad_phi0, float* grad_phi1) {
    if (p.m == 64)
        scatter_any<64>(p, win, v_hat, u_hat, grad_cu, grad_cv, grad_phi0, grad_phi1);
    else
        scatter_any<0>(p, win, v_hat, u_hat, grad_cu, grad_cv, grad_phi0, grad_phi1);
}
