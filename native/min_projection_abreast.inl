// c^u and c^v (eq. 4 of the paper, model QQ) with a pixel in each lane (pixel_tiles.inl).

template <class B>
class MinTile : public PixelTile<B, MinTile<B>> {
    using Base = PixelTile<B, MinTile<B>>;
    friend Base;
    using V = typename B::V;
    static constexpr int lanes = B::lanes;
    using Base::p_, Base::win_, Base::y_, Base::rows_, Base::x0_, Base::lo_, Base::hi_,
        Base::inside_, Base::v_;

   public:
    MinTile(const BitsPair& p, const Window& win, std::uint8_t outside, std::uint8_t* cu,
            std::uint8_t* cv)
        : Base(p, win), outside_(outside), cu_(cu), cv_(cv),
          masks_(std::size_t(win.du + 1) * lanes), best_u_(std::size_t(2) * (win.du + 1) * lanes),
          best_v_(std::size_t(2) * (win.dv + 1) * lanes) {}

   private:
    HAMFLOW_INLINE std::uint8_t* best_u(int r, int k) {
        return best_u_.data() + (std::size_t(r) * (win_.du + 1) + k) * lanes;
    }
    HAMFLOW_INLINE std::uint8_t* best_v(int r, int k) {
        return best_v_.data() + (std::size_t(r) * (win_.dv + 1) + k) * lanes;
    }

    void begin() {
        std::memset(best_u_.data(), 0xff, best_u_.size());
        if (inside_) return;
        for (int k = lo_; k < hi_; ++k) {
            // What is outside loses against every distance.
            const auto inside = this->columns_inside(k);
            std::uint8_t* mask = masks_.data() + std::size_t(k) * lanes;
            for (int l = 0; l < lanes; ++l)
                mask[l] = l < inside.from || l >= inside.to ? 0xff : 0;
        }
    }

    template <bool P0, bool P1>
    HAMFLOW_INLINE void scan(const std::uint8_t* row, int k) {
        if (inside_)
            scan<P0, P1, false>(row, k);
        else
            scan<P0, P1, true>(row, k);
    }
    template <bool P0, bool P1, bool masked>
    HAMFLOW_INLINE void scan(const std::uint8_t* row, int k) {
        const std::size_t step = Base::stride(p_.w);
        V a[B::planes], b[B::planes];
        unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            if (P0) a[p] = this->own(0, p);
            if (P1) b[p] = this->own(1, p);
        });
        V row_a = B::set1(0xff), row_b = B::set1(0xff);
        const std::uint8_t* t = this->first_target(row);
        const std::uint8_t* mask = masks_.data() + std::size_t(lo_) * lanes;
        std::uint8_t* at_a = best_u(0, lo_);
        std::uint8_t* at_b = best_u(1, lo_);
        for (int u = lo_; u < hi_; ++u, ++t, mask += lanes, at_a += lanes, at_b += lanes) {
            V da, db;
            unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                const V q = B::load_target(t + p * step);
                if (P0) da = p ? B::plus_count(da, q, a[p]) : B::count(q, a[p]);
                if (P1) db = p ? B::plus_count(db, q, b[p]) : B::count(q, b[p]);
            });
            const auto compare = [&](V& best, std::uint8_t* at, V d) HAMFLOW_INLINE_LAMBDA {
                if (masked) d = B::bit_or(d, B::load(mask));
                best = B::min(best, d);
                B::store(at, B::min(B::load(at), d));
            };
            if (P0) compare(row_a, at_a, da);
            if (P1) compare(row_b, at_b, db);
        }
        if (P0) B::store(best_v(0, k), row_a);
        if (P1) B::store(best_v(1, k - 1), row_b);
    }

    // What lies outside competes with what lies inside; then to the order of the volumes.
    void finish(int r) {
        const LabelRange v = v_[r];
        for (int k = 0; k < win_.dv; ++k) {
            if (!v.contains(k) || lo_ >= hi_) std::memset(best_v(r, k), outside_, lanes);
        }
        for (int k = 0; k < win_.du; ++k)
            if (v.empty()) std::memset(best_u(r, k), outside_, lanes);
        if (!inside_) compete_in_columns(r, v);
        if (!v.covers(win_.dv))
            for (std::uint8_t *x = best_u(r, 0), *end = best_u(r, win_.du); x < end; ++x)
                *x = std::min(*x, outside_);
        const std::size_t first = p_.pixel(x0_, y_ + r);
        const auto step = static_cast<std::ptrdiff_t>(p_.step_x);
        transpose_columns(best_v(r, 0), lanes, win_.dv, lanes, cv_ + first * win_.dv,
                          step * win_.dv);
        transpose_columns(best_u(r, 0), lanes, win_.du, lanes, cu_ + first * win_.du,
                          step * win_.du);
    }
    void compete_in_columns(int r, LabelRange v) {
        std::uint8_t limit[lanes];  // what no c^v of a pixel with labels outside is above
        for (int l = 0; l < lanes; ++l)
            limit[l] = u_labels(win_, x0_ + l, p_.w).covers(win_.du) ? 0xff : outside_;
        for (int k = v.lo; k < v.hi; ++k)
            for (int l = 0; l < lanes; ++l) best_v(r, k)[l] = std::min(best_v(r, k)[l], limit[l]);
        for (int k = 0; k < win_.du; ++k) {
            const auto inside = this->columns_inside(k);
            std::uint8_t* best = best_u(r, k);
            for (int l = 0; l < lanes; ++l)
                best[l] = l < inside.from || l >= inside.to ? outside_ : best[l];
        }
    }

    std::uint8_t outside_;
    std::uint8_t *cu_, *cv_;
    Buffer<std::uint8_t> masks_;   // [label u][lane]
    Buffer<std::uint8_t> best_u_;  // [row][label u, and a spare one][lane]
    Buffer<std::uint8_t> best_v_;  // [row][label v, and a spare one][lane]
};
