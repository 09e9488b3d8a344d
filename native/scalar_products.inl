// FF: c^u and c^v (eq. 4 of the paper), their inner argmins and the messages of the CRF (eqs. 8
// and 9, F in Table 1), from float descriptors: c = -<phi0, phi1> (eq. 1). It is a matrix product
// whose result is folded into the minima while it is still in registers and the first-level cache;
// the 4D cost is never stored.
//
// A task is a block of block_rows x block_columns pixels. For each target row, the targets that
// the block sees are packed into panels [panel][component][lane]; a register tile then holds the
// scalar products of Floats::rows pixels with one panel. Lanes are targets, so pixel i of the
// block finds its label u in lane u + i: volumes of the block are kept in that "lane order" and
// shifted into label order at the end. Everything below maximizes the scalar product s = -c.

constexpr int panel_width = Floats::width * Floats::vectors;
constexpr int block_rows = 8;
constexpr int block_columns = 48;

// Which of the two outputs a kernel wants.
enum class Wants { both, both_with_argmins, u_only, v_only };

struct ProductBlock {
    const PhiPair& phi;
    const Window& win;
    int y0, rows, x0, columns;
    int panels;  // of a target row
    int lanes;   // panels * panel_width

    ProductBlock(const PhiPair& p, const Window& w, int y, int x)
        : phi(p), win(w), y0(y), rows(std::min(block_rows, p.h - y)), x0(x),
          columns(std::min(block_columns, p.w - x)) {
        panels = (columns + win.du - 1 + panel_width - 1) / panel_width;
        lanes = panels * panel_width;
    }
};

// Targets (x0 + u0 + lane, row) as [panel][component][lane]; zeros outside of the image.
HAMFLOW_INLINE void pack_targets(const ProductBlock& b, int row, float* packed) {
    const int m = b.phi.m;
    const long long first = static_cast<long long>(b.x0) + b.win.u0;
    for (int lane = 0; lane < b.lanes; ++lane) {
        const long long x = first + lane;
        float* to = packed + static_cast<std::size_t>(lane / panel_width) * m * panel_width +
                    lane % panel_width;
        if (x < 0 || x >= b.phi.w) {
            for (int k = 0; k < m; ++k) to[k * panel_width] = 0.0f;
        } else {
            const float* from =
                b.phi.phi1 + (static_cast<std::size_t>(row) * b.phi.w + x) * m;
            for (int k = 0; k < m; ++k) to[k * panel_width] = from[k];
        }
    }
}

// Scalar products of Floats::rows pixels (descriptors at a[0], a[1], ...) with one panel.
HAMFLOW_INLINE void product_tile(const float* const* a, const float* panel, int m, float* out) {
    typename Floats::F acc[Floats::rows * Floats::vectors];
    const float* p[Floats::rows];
    unroll<Floats::rows>([&](auto i) HAMFLOW_INLINE_LAMBDA { p[i] = a[i]; });
    unroll<Floats::rows * Floats::vectors>(
        [&](auto j) HAMFLOW_INLINE_LAMBDA { acc[j] = Floats::zero(); });
    for (int k = 0; k < m; ++k) {
        typename Floats::F t[Floats::vectors];
        unroll<Floats::vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA {
            t[j] = Floats::loadu(panel + k * panel_width + j * Floats::width);
        });
        unroll<Floats::rows>([&](auto i) HAMFLOW_INLINE_LAMBDA {
            const typename Floats::F s = Floats::set1(p[i][k]);
            unroll<Floats::vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                auto& c = acc[i * Floats::vectors + j];
                c = Floats::fma(s, t[j], c);
            });
        });
    }
    unroll<Floats::rows * Floats::vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA {
        Floats::storeu(out + j * Floats::width, acc[j]);
    });
}

template <Wants wants>
class ProductSink {
    using F = typename Floats::F;
    static constexpr bool wants_u = wants != Wants::v_only;
    static constexpr bool wants_v = wants != Wants::u_only;
    static constexpr bool wants_args = wants == Wants::both_with_argmins;

   public:
    // lam: offsets of the sender's labels, or null.
    ProductSink(const ProductBlock& b, float outside, const float* lam, float* out_u, float* out_v,
                std::int16_t* v_hat, std::int16_t* u_hat)
        : b_(b), outside_(outside), lam_(lam), out_u_(out_u), out_v_(out_v), v_hat_(v_hat),
          u_hat_(u_hat), pixels_(std::size_t(b.rows) * b.columns) {
        if (wants_u) best_u_ = Buffer<float>(pixels_ * b.lanes, lowest);
        if (wants_v) best_v_ = Buffer<float>(pixels_ * b.win.dv, lowest);
        if (wants_args) {
            arg_u_ = Buffer<float>(pixels_ * b.lanes, 0.0f);
            arg_v_ = Buffer<std::int16_t>(pixels_ * b.win.dv, 0);
        }
        if (wants_v) {
            // 0 (or lam) for a pixel's own labels, -infinity for the other lanes.
            offsets_ = Buffer<float>(pixels_ * b.lanes, lowest);
            for_each_pixel([&](int, int i, int x, std::size_t local, std::size_t global) {
                const LabelRange u = u_labels(b_.win, x, b_.phi.w);
                float* to = offsets_.data() + local * b_.lanes + i;
                for (int k = u.lo; k < u.hi; ++k)
                    to[k] = lam_ ? lam_[global * b_.win.du + k] : 0.0f;
            });
        }
    }

    // The pixels from column i0 of block row r on meet the target row with label kv: begin_group,
    // then the products s of n pixels with each panel, then end_group.
    HAMFLOW_INLINE void begin_group() {
        if (!wants_v) return;
        for (float& t : top_) t = lowest;
        for (float& t : top_panel_) t = 0.0f;
    }
    HAMFLOW_INLINE void consume(const float* s, int r, int i0, int n, int panel, int kv) {
        for (int i = 0; i < n; ++i, s += panel_width) {
            const std::size_t local = std::size_t(r) * b_.columns + i0 + i;
            const std::size_t at = local * b_.lanes + std::size_t(panel) * panel_width;
            const F offset = Floats::set1(wants == Wants::u_only ? lam_v(local, kv) : 0.0f);
            unroll<Floats::vectors>([&](auto j) HAMFLOW_INLINE_LAMBDA {
                const int lane = j * Floats::width;
                const F product = Floats::loadu(s + lane);
                if (wants_u)
                    keep_max(best_u_.data() + at + lane,
                             wants_args ? arg_u_.data() + at + lane : nullptr,
                             Floats::add(product, offset), static_cast<float>(kv));
                if (wants_v)
                    keep_max(top_ + i * panel_width + lane, top_panel_ + i * panel_width + lane,
                             Floats::add(product, Floats::loadu(offsets_.data() + at + lane)),
                             static_cast<float>(panel));
            });
        }
    }
    HAMFLOW_INLINE void end_group(int r, int i0, int n, int kv) {
        if (!wants_v) return;
        for (int i = 0; i < n; ++i) {
            const float* top = top_ + i * panel_width;
            const std::size_t at =
                (std::size_t(r) * b_.columns + i0 + i) * b_.win.dv + static_cast<std::size_t>(kv);
            float best = top[0];
            for (int j = 1; j < panel_width; ++j) best = top[j] > best ? top[j] : best;
            best_v_[at] = best;
            if (!wants_args) continue;
            int label = max_label;
            for (int j = 0; j < panel_width; ++j) {
                const int panel = static_cast<int>(top_panel_[i * panel_width + j]);
                if (top[j] == best) label = std::min(label, panel * panel_width + j - i0 - i);
            }
            arg_v_[at] = static_cast<std::int16_t>(label);
        }
    }

    void finish() const {
        for_each_pixel([&](int y, int i, int x, std::size_t local, std::size_t global) {
            const LabelRange u = u_labels(b_.win, x, b_.phi.w);
            const LabelRange v = v_labels(b_.win, y, b_.phi.to_h);
            if (wants_u) finish_u(u, v, local * b_.lanes + i, global);
            if (wants_v) finish_v(u, v, local * b_.win.dv, global);
        });
    }

   private:
    static constexpr float lowest = -std::numeric_limits<float>::infinity();
    static constexpr int max_label = std::numeric_limits<std::int16_t>::max();

    template <class Body>
    void for_each_pixel(const Body& body) const {
        for (int r = 0; r < b_.rows; ++r)
            for (int i = 0; i < b_.columns; ++i)
                body(b_.y0 + r, i, b_.x0 + i, std::size_t(r) * b_.columns + i,
                     static_cast<std::size_t>(b_.y0 + r) * b_.phi.w + b_.x0 + i);
    }
    HAMFLOW_INLINE float lam_v(std::size_t local, int kv) const {
        const std::size_t r = local / b_.columns, i = local % b_.columns;
        const std::size_t global = (b_.y0 + r) * b_.phi.w + b_.x0 + i;
        return lam_[global * b_.win.dv + kv];
    }
    // best = max(best, s); where s is strictly larger, arg = label.
    HAMFLOW_INLINE void keep_max(float* best, float* arg, F s, float label) const {
        const F old = Floats::loadu(best);
        Floats::storeu(best, Floats::max(old, s));
        if (wants_args)
            Floats::storeu(arg,
                           Floats::where_greater(s, old, Floats::set1(label), Floats::loadu(arg)));
    }

    // Cost -s (and label) of what lies inside, against what lies outside: -`beyond` at the label
    // `other`, or nothing when all is inside.
    void finish_u(LabelRange u, LabelRange v, std::size_t at, std::size_t global) const {
        const Window& win = b_.win;
        const float* lam = wants == Wants::u_only && lam_ ? lam_ + global * win.dv : nullptr;
        const Outside o = outside(lam, v, win.dv);
        for (int k = 0; k < win.du; ++k) {
            float best = o.any;
            int arg = 0;
            if (u.contains(k) && !v.empty()) {
                best = best_u_[at + k];
                if (wants_args) arg = static_cast<int>(arg_u_[at + k]);
                if (o.beyond > best || (o.beyond == best && o.label < arg)) {
                    best = o.beyond;
                    arg = o.label;
                }
            }
            out_u_[global * win.du + k] = -best;
            if (wants_args) v_hat_[global * win.du + k] = static_cast<std::int16_t>(arg);
        }
    }

    void finish_v(LabelRange u, LabelRange v, std::size_t at, std::size_t global) const {
        const Window& win = b_.win;
        const Outside o = outside(lam_ ? lam_ + global * win.du : nullptr, u, win.du);
        for (int k = 0; k < win.dv; ++k) {
            float best = o.any;
            int arg = 0;
            if (v.contains(k) && !u.empty()) {
                best = best_v_[at + k];
                if (wants_args) arg = arg_v_[at + k];
                if (o.beyond > best || (o.beyond == best && o.label < arg)) {
                    best = o.beyond;
                    arg = o.label;
                }
            }
            out_v_[global * win.dv + k] = -best;
            if (wants_args) u_hat_[global * win.dv + k] = static_cast<std::int16_t>(arg);
        }
    }

    // The largest lam - outside over all labels of the sender (any) and over those whose target
    // is outside (beyond), of which `label` is the first.
    struct Outside { float any, beyond; int label; };
    Outside outside(const float* lam, LabelRange inside, int count) const {
        Outside o{lowest, lowest, inside.first_outside(count)};
        for (int k = 0; k < count; ++k) {
            const float s = (lam ? lam[k] : 0.0f) - outside_;
            o.any = s > o.any ? s : o.any;
            if (!inside.contains(k)) o.beyond = s > o.beyond ? s : o.beyond;
        }
        return o;
    }

    const ProductBlock& b_;
    float outside_;
    const float* lam_;
    float *out_u_, *out_v_;
    std::int16_t *v_hat_, *u_hat_;
    std::size_t pixels_;
    Buffer<float> best_u_;         // [pixel][lane]
    Buffer<float> best_v_;         // [pixel][label v]
    Buffer<float> offsets_;        // [pixel][lane]
    Buffer<float> arg_u_;          // [pixel][lane], labels as floats like all else in the loop
    Buffer<std::int16_t> arg_v_;   // [pixel][label v]
    // The best product of each lane with the current target row, and the panel that gave it.
    alignas(64) float top_[Floats::rows * panel_width];
    alignas(64) float top_panel_[Floats::rows * panel_width];
};

// All products of block row r with the packed target row.
template <class Sink>
HAMFLOW_INLINE void feed_products(const ProductBlock& b, int r, int kv, const float* packed,
                                  Sink& sink) {
    const int m = b.phi.m;
    const float* row =
        b.phi.phi0 + (static_cast<std::size_t>(b.y0 + r) * b.phi.w + b.x0) * m;
    alignas(64) float s[Floats::rows * panel_width];
    for (int i0 = 0; i0 < b.columns; i0 += Floats::rows) {
        const int n = std::min(Floats::rows, b.columns - i0);
        const float* a[Floats::rows];
        for (int i = 0; i < Floats::rows; ++i) a[i] = row + (i0 + std::min(i, n - 1)) * m;
        // The lanes that any of the pixels has as a label inside the image.
        int lo = b.lanes, hi = 0;
        for (int i = i0; i < i0 + n; ++i) {
            const LabelRange u = u_labels(b.win, b.x0 + i, b.phi.w);
            if (u.empty()) continue;
            lo = std::min(lo, i + u.lo);
            hi = std::max(hi, i + u.hi);
        }
        sink.begin_group();
        for (int q = lo / panel_width; q * panel_width < hi; ++q) {
            product_tile(a, packed + static_cast<std::size_t>(q) * m * panel_width, m, s);
            sink.consume(s, r, i0, n, q, kv);
        }
        sink.end_group(r, i0, n, kv);
    }
}

template <Wants wants>
void run_products(const PhiPair& phi, const Window& win, float outside, const float* lam,
                  float* out_u, float* out_v, std::int16_t* v_hat, std::int16_t* u_hat) {
    const int across = (phi.w + block_columns - 1) / block_columns;
    const int down = (phi.h + block_rows - 1) / block_rows;
    parallel_for(across * down, [&](int task) {
        const ProductBlock b(phi, win, task / across * block_rows, task % across * block_columns);
        ProductSink<wants> sink(b, outside, lam, out_u, out_v, v_hat, u_hat);
        Buffer<float> packed(static_cast<std::size_t>(b.lanes) * phi.m);
        // kv0 is the label of the block's first row; row r has kv0 - r.
        for (int kv0 = 0; kv0 < win.dv + b.rows - 1; ++kv0) {
            const long long row = static_cast<long long>(b.y0) + win.v0 + kv0;
            if (row < 0 || row >= phi.to_h) continue;
            pack_targets(b, static_cast<int>(row), packed.data());
            for (int r = 0; r < b.rows; ++r)
                if (kv0 - r >= 0 && kv0 - r < win.dv)
                    feed_products(b, r, kv0 - r, packed.data(), sink);
        }
        sink.finish();
    });
}

void float_min_projection(const PhiPair& phi, const Window& win, float outside, float* cu,
                          float* cv, std::int16_t* v_hat, std::int16_t* u_hat) {
    if (v_hat && u_hat)
        run_products<Wants::both_with_argmins>(phi, win, outside, nullptr, cu, cv, v_hat, u_hat);
    else
        run_products<Wants::both>(phi, win, outside, nullptr, cu, cv, nullptr, nullptr);
}

void float_message(const PhiPair& phi, const Window& win, Direction to, float outside,
                   const float* lam, float* out) {
    if (to == Direction::to_u)
        run_products<Wants::u_only>(phi, win, outside, lam, out, nullptr, nullptr, nullptr);
    else
        run_products<Wants::v_only>(phi, win, outside, lam, nullptr, out, nullptr, nullptr);
}
