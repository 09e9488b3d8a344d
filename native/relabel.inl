// Block moves on the primal side of the CRF (not in the paper): rows (or columns) of labels u that
// are optimal for the energy of eq. 3 while v and the rows above and below stay as they are.
//
// Data costs are computed from the descriptors when they are needed, so no volume is read. The
// values stay within the range that chains.inl derives: costs within +-C, less what up to four
// fixed neighbors save, plus a message of at most tau2.

// The costs of n labels of pixel `from`, whose targets begin at `to`, in units of the solver.
template <class T, class Cost>
HAMFLOW_INLINE void label_costs(const BitsPair& p, const Cost& cost, std::size_t from,
                                std::size_t to, int n, T* out) {
    constexpr int at_once = 128;
    std::int16_t distances[at_once];
    const auto step = static_cast<T>(cost.step), base = static_cast<T>(cost.base);
    for (int begin = 0; begin < n; begin += at_once) {
        const int count = std::min(at_once, n - begin);
        with_words(p, [&](auto words) HAMFLOW_INLINE_LAMBDA {
            row_distances<decltype(words)::value>(p.from(from), p.to(to + begin), count, distances);
        });
        for (int k = 0; k < count; ++k)
            out[begin + k] = static_cast<T>(step * distances[k] + base);
    }
}
HAMFLOW_INLINE void label_costs(const PhiPair& p, const ScaledCost& cost, std::size_t from,
                                std::size_t to, int n, float* out) {
    for (int k = 0; k < n; ++k)
        out[k] = -cost.scale *
                 scalar_product<0>(p.phi0 + from * p.m, p.phi1 + (to + k) * p.m, p.m);
}

template <class A, bool two_level, int fixed, class Problem>
class ChainRelabeler {
    using T = typename A::T;
    using V = typename A::V;

   public:
    explicit ChainRelabeler(const Problem& problem)
        : p_(problem), h_(problem.pair.h), w_(problem.pair.w), d_(problem.win.du),
          n_(problem.blocks == Blocks::rows ? w_ : problem.blocks == Blocks::columns ? h_ : 1),
          shape_(d_), neighbors_(shape_, problem.edges.reach), unary_(shape_.padded, T(0)),
          f_(shape_, n_), low_(n_) {}

    // The chain that begins at pixel (x, y).
    void solve(int x, int y) {
        const int dx = p_.blocks == Blocks::rows, dy = p_.blocks == Blocks::columns;
        for (int i = 0; i < n_; ++i) {
            if (dy && i + ahead < n_) fetch(x, y + i + ahead);
            set_unary(x + i * dx, y + i * dy);
            forward(i, i ? edge(x + (i - 1) * dx, y + (i - 1) * dy) : EdgeCost<T>{});
        }
        int next = 0;
        for (int i = n_ - 1; i >= 0; --i) {
            const int xi = x + i * dx, yi = y + i * dy;
            std::int16_t& label = p_.u[pixel(xi, yi)];
            next = i == n_ - 1 ? best_of(i, label) : best_before(i, next, edge(xi, yi));
            label = static_cast<std::int16_t>(next);
        }
    }

   private:
    HAMFLOW_INLINE std::size_t pixel(int x, int y) const {
        return static_cast<std::size_t>(y) * w_ + x;
    }
    HAMFLOW_INLINE EdgeCost<T> edge(int x, int y) const {
        const auto* edges = p_.blocks == Blocks::rows ? p_.edges.right : p_.edges.down;
        return edges[pixel(x, y)];
    }

    // Down a column, every pixel is far away from the one before.
    HAMFLOW_INLINE void fetch(int x, int y) const {
        const std::size_t i = pixel(x, y);
        for (int k = 0; p_.unary && k < d_ + 63; k += 64) prefetch(p_.unary + i * d_ + k);
        prefetch(p_.edges.right + i);
        prefetch(p_.edges.down + i);
    }
    static constexpr int ahead = 4;  // pixels

    // Data costs, and what the neighbors that are not in the chain say.
    void set_unary(int x, int y) {
        const std::size_t i = pixel(x, y);
        const LabelRange u = u_labels(p_.win, x, w_), v = v_labels(p_.win, y, h_);
        const int kv = p_.v[i];
        const bool inside = v.contains(kv) && !u.empty();
        T* out = unary_.data();
        if (!inside || !u.covers(d_))
            for (int k = 0; k < d_; ++k) out[k] = static_cast<T>(p_.cost.outside);
        if (inside)
            label_costs(p_.pair, p_.cost, i, pixel(x + p_.win.u0 + u.lo, y + p_.win.v0 + kv),
                           u.hi - u.lo, out + u.lo);
        if (p_.unary)
            for (int k = 0; k < d_; ++k)
                out[k] = static_cast<T>(out[k] + p_.unit * p_.unary[i * d_ + k]);
        if (p_.blocks != Blocks::rows) {
            if (x > 0) add_neighbor(p_.u[i - 1], p_.edges.right[i - 1]);
            if (x + 1 < w_) add_neighbor(p_.u[i + 1], p_.edges.right[i]);
        }
        if (p_.blocks != Blocks::columns) {
            if (y > 0) add_neighbor(p_.u[i - w_], p_.edges.down[i - w_]);
            if (y + 1 < h_) add_neighbor(p_.u[i + w_], p_.edges.down[i]);
        }
    }
    // w rho(k - label) less its cap, which is the same for all k.
    HAMFLOW_INLINE void add_neighbor(int label, const EdgeCost<T>& e) {
        // Checked before the call, but another thread of the caller's may write to the labels.
        if (label < 0 || label >= d_) return;
        unary_[label] -= e.cap;
        for (int t = 1; t <= p_.edges.reach; ++t) {
            const T saved = e.cap - rho(e, t);
            if (saved <= 0) break;
            if (label - t >= 0) unary_[label - t] -= saved;
            if (label + t < d_) unary_[label + t] -= saved;
        }
    }
    static HAMFLOW_INLINE T rho(const EdgeCost<T>& e, int t) {
        // In int or float: a slope times t may exceed an int16.
        const auto slope = e.first + e.slope * (t - 1);
        return slope < e.cap ? static_cast<T>(slope) : e.cap;
    }

    // f[i] = unary + msg(f[i - 1]) - min f[i - 1], and its minimum.
    HAMFLOW_INLINE void forward(int i, EdgeCost<T> e) {
        T* out = f_.row(i);
        const T* unary = unary_.data();
        V low = A::set1(A::big);
        const auto put = [&](int j, V v) HAMFLOW_INLINE_LAMBDA {
            A::storeu(out + j * A::width, v);
            low = A::min(low, v);
        };
        if (i) {
            const V cap = A::set1(e.cap), less = A::set1(low_[i - 1]);
            neighbors_.for_each(f_.row(i - 1), e,
                                 [&](int j, V m, auto finish) HAMFLOW_INLINE_LAMBDA {
                const V message = A::min(A::sub(m, less), cap);
                put(j, finish(A::add(A::loadu(unary + j * A::width), message)));
            });
        } else {
            shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
                put(j, finish(A::loadu(unary + j * A::width)));
            });
        }
        low_[i] = A::first(A::min_across(low));
    }

    // The label of the minimum of f[i]: the old one if that is as good, else the nearest to zero
    // displacement.
    int best_of(int i, int old) {
        const T* f = f_.row(i);
        if (old >= 0 && old < d_ && f[old] == low_[i]) return old;
        return nearest_label(d_, p_.win.u0, [&](int k) { return f[k] == low_[i]; });
    }
    // The best label of node i if node i + 1 has `next`: near to it, or else any.
    int best_before(int i, int next, const EdgeCost<T>& e) {
        const T* f = f_.row(i);
        int best = next;
        T value = f[next];
        for (int t = 1; t <= p_.edges.reach; ++t) {
            const T r = rho(e, t);
            for (int k : {next - t, next + t}) {
                if (k < 0 || k >= d_ || !(f[k] + r < value)) continue;
                best = k;
                value = static_cast<T>(f[k] + r);
            }
        }
        return low_[i] + e.cap < value ? best_of(i, best) : best;
    }

    const Problem& p_;
    int h_, w_, d_, n_;
    RowShape<A, fixed> shape_;
    Neighbors<A, two_level, fixed> neighbors_;
    Buffer<T> unary_;
    PaddedRows<A> f_;
    Buffer<T> low_;
};

template <class A, bool two_level, int fixed, class Problem>
void run_relabel(const Problem& problem) {
    const int h = problem.pair.h, w = problem.pair.w;
    const int lines = problem.blocks == Blocks::columns ? w : h;
    for (int parity = 0; parity < 2; ++parity) {
        const bool pixels = problem.blocks == Blocks::pixels;
        const int count = pixels ? h : (lines + 1 - parity) / 2;
        const int pieces = std::min(count, 8 * get_num_threads());
        parallel_for(pieces, [&](int piece) {
            ChainRelabeler<A, two_level, fixed, Problem> solver(problem);
            const auto border = [&](int i) {
                return static_cast<int>(static_cast<long long>(count) * i / pieces);
            };
            for (int c = border(piece); c < border(piece + 1); ++c) {
                if (pixels)
                    for (int x = (c + parity) % 2; x < w; x += 2) solver.solve(x, c);
                else if (problem.blocks == Blocks::rows)
                    solver.solve(0, 2 * c + parity);
                else
                    solver.solve(2 * c + parity, 0);
            }
        });
    }
}

template <class A, class Problem>
void relabel(const Problem& problem) {
    if (problem.edges.reach > 1)
        run_relabel<A, false, 0>(problem);
    else if (A::unrolled && problem.win.du == 128)
        run_relabel<A, true, A::unrolled ? 128 / A::width : 0>(problem);
    else
        run_relabel<A, true, 0>(problem);
}

void relabel_bits16(const RelabelingBits16& problem) { relabel<Labels16>(problem); }
void relabel_bits32(const RelabelingBits32& problem) { relabel<Labels32>(problem); }
void relabel_phi(const RelabelingPhi& problem) { relabel<Labels32>(problem); }
