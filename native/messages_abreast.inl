// The int16 messages of messages.inl with a pixel in each lane, in tiles of B::lanes pixels of two
// rows: whatever the window's size, no lane is empty, the pixels' own bits stay in registers for
// the whole window, and the maximum over the sender's labels is one of vectors. For levels that
// count the bits of a vector of bytes with one instruction; where tables of a pixel are faster, the
// lanes have to be labels. C turns volumes (turn.inl).

template <class B, class C>
class MessageTile {
    using Value = std::int16_t;
    using V = typename B::V;
    static constexpr int lanes = B::lanes, parts = 2, part = B::lanes16;
    static constexpr int group = C::group, turned = C::width;

   public:
    MessageTile(const BitsPair& p, const Window& win, const FixedCost& cost, const Value* lam,
                Value* out)
        : p_(p), win_(win), cost_(cost), scale_(cost.step), lam_(lam), out_(out),
          own_(std::size_t(2) * B::planes * stride(p.w)), row_(std::size_t(p.w) * p.words),
          offsets_(std::size_t(2) * win.du * lanes), best_(std::size_t(2) * (win.dv + 1) * lanes) {}

    // Planes of one row: a vector may begin up to `lanes` columns before it, and end as far behind.
    static std::size_t stride(int w) { return std::size_t(round_up(w, lanes)) + 2 * lanes; }
    static void build_planes(const BitsPair& p, const std::uint64_t* field, int y,
                             std::uint64_t* row, std::uint8_t* out) {
        for (int x = 0; x < p.w; ++x)
            std::copy_n(field + p.pixel(x, y) * p.words, p.words, row + std::size_t(x) * p.words);
        std::memset(out, 0, B::planes * stride(p.w));
        B::build_planes(row, p.w, out + lanes, stride(p.w));
    }

    // The rows y and, if there is one, y + 1.
    void run(int y, const std::uint8_t* targets) {
        y_ = y;
        rows_ = std::min(2, p_.h - y);
        for (int r = 0; r < rows_; ++r) {
            build_planes(p_, p_.bits0, y + r, row_.data(), own(r));
            v_[r] = v_labels(win_, y + r, p_.h);
        }
        if (rows_ == 1) v_[1] = {0, 0};
        for (int x0 = 0; x0 < p_.w; x0 += lanes) tile(std::min(x0, p_.w - lanes), targets);
    }

   private:
    HAMFLOW_INLINE std::uint8_t* own(int r) { return own_.data() + r * B::planes * stride(p_.w); }
    HAMFLOW_INLINE Value* offsets(int r) {
        return offsets_.data() + std::size_t(r) * win_.du * lanes;
    }
    HAMFLOW_INLINE Value* best(int r, int k) {
        return best_.data() + (std::size_t(r) * (win_.dv + 1) + k) * lanes;
    }
    // The pixel of a lane; those of even pixels come first, as `scaled16` has them.
    static HAMFLOW_INLINE int pixel_of(int lane) { return B::pixel_of16(lane); }

    void tile(int x0, const std::uint8_t* targets) {
        x0_ = x0;
        // Labels of which at least one pixel has a target in the image.
        const LabelRange first = u_labels(win_, x0, p_.w);
        const LabelRange last = u_labels(win_, x0 + lanes - 1, p_.w);
        lo_ = first.empty() ? last.lo : last.empty() ? first.lo : std::min(first.lo, last.lo);
        hi_ = std::max(first.hi, last.hi);
        inside_ = first.covers(win_.du) && last.covers(win_.du);
        // In the middle of a window that is wider than the image, neither end may have one.
        if (!inside_) widest_labels();
        for (int r = 0; r < rows_; ++r) {
            for (int l = 0; l < lanes; ++l)
                pixel_[r][l] = static_cast<std::ptrdiff_t>(p_.pixel(x0 + pixel_of(l), y_ + r));
            set_offsets(r);
        }
        for (int k = 0; k <= win_.dv; ++k) {
            const bool a = v_[0].contains(k), b = k > 0 && v_[1].contains(k - 1);
            if (!a && !b) continue;
            const std::uint8_t* row =
                targets + std::size_t(y_ + win_.v0 + k) * B::planes * stride(p_.w);
            if (a && b)
                scan<true, true>(row, k);
            else if (a)
                scan<true, false>(row, k);
            else
                scan<false, true>(row, k);
        }
        for (int r = 0; r < rows_; ++r) finish(r);
    }
    void widest_labels() {
        lo_ = win_.du;
        hi_ = 0;
        for (int l = 0; l < lanes; ++l) {
            const LabelRange u = u_labels(win_, x0_ + l, p_.w);
            if (u.empty()) continue;
            lo_ = std::min(lo_, u.lo);
            hi_ = std::max(hi_, u.hi);
        }
    }

    // lam - base of each label and lane; where the target is outside, what loses.
    void set_offsets(int r) {
        Value* to = offsets(r);
        turn(win_.du, [&](int k, int l, auto* rows) HAMFLOW_INLINE_LAMBDA {
            std::ptrdiff_t at[turned];
            for (int i = 0; i < turned; ++i) at[i] = pixel_[r][l + i] * win_.du;
            const auto base = C::set1(static_cast<Value>(cost_.base));
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                rows[i] = C::subs(C::load_pieces(lam_ + k, at + i), base);
            });
            Turn<C>::transpose(rows);
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                C::storeu(to + std::size_t(k + i) * lanes + l, rows[i]);
            });
        });
        if (win_.du < group)
            for (int k = 0; k < win_.du; ++k)
                for (int l = 0; l < lanes; ++l)
                    to[k * lanes + l] =
                        saturate16(lam_[pixel_[r][l] * win_.du + k] - cost_.base);
        if (inside_) return;
        for (int l = 0; l < lanes; ++l) {
            const LabelRange u = u_labels(win_, x0_ + pixel_of(l), p_.w);
            for (int k = lo_; k < hi_; ++k)
                if (!u.contains(k)) to[k * lanes + l] = -32768;
        }
    }

    // body(k, l, rows) for the groups of labels and lanes that are turned together.
    template <class Body>
    static HAMFLOW_INLINE void turn(int count, const Body& body) {
        typename C::V rows[group];
        for (int l = 0; l < lanes; l += turned) {
            for (int k = 0; k + group <= count; k += group) body(k, l, rows);
            if (count > group && count % group) body(count - group, l, rows);
        }
    }

    // The best of all labels u with the target row of label k of the first row, k - 1 of the second.
    template <bool P0, bool P1>
    HAMFLOW_INLINE void scan(const std::uint8_t* row, int k) {
        const std::size_t step = stride(p_.w);
        V a[B::planes], b[B::planes];
        unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            if (P0) a[p] = B::loadu(own(0) + p * step + lanes + x0_);
            if (P1) b[p] = B::loadu(own(1) + p * step + lanes + x0_);
        });
        V best_a[parts], best_b[parts];
        unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            best_a[h] = best_b[h] = B::set1_16(-32768);
        });
        const std::uint8_t* t = row + lanes + x0_ + win_.u0 + lo_;
        const Value* to_a = offsets(0) + std::size_t(lo_) * lanes;
        const Value* to_b = offsets(1) + std::size_t(lo_) * lanes;
        for (int u = lo_; u < hi_; ++u, ++t, to_a += lanes, to_b += lanes) {
            V da, db;
            unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                const V q = B::load_target(t + p * step);
                if (P0) da = p ? B::plus_count(da, q, a[p]) : B::count(q, a[p]);
                if (P1) db = p ? B::plus_count(db, q, b[p]) : B::count(q, b[p]);
            });
            unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
                if (P0)
                    best_a[h] = B::max16(best_a[h], B::minus_scaled16(B::load16(to_a + h * part),
                                                                      B::scaled16(da, scale_, h)));
                if (P1)
                    best_b[h] = B::max16(best_b[h], B::minus_scaled16(B::load16(to_b + h * part),
                                                                      B::scaled16(db, scale_, h)));
            });
        }
        unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            if (P0) B::store16(best(0, k) + h * part, best_a[h]);
            if (P1) B::store16(best(1, k - 1) + h * part, best_b[h]);
        });
    }

    // What lies outside competes with what lies inside; then back to the order of the volume.
    void finish(int r) {
        const LabelRange v = v_[r];
        if (!inside_ || !v.covers(win_.dv)) {
            for (int l = 0; l < lanes; ++l) {
                const LabelRange u = u_labels(win_, x0_ + pixel_of(l), p_.w);
                const Value* lam = lam_ + pixel_[r][l] * win_.du;
                Value any = -32768, beyond = -32768;
                for (int k = 0; k < win_.du; ++k)
                    any = std::max(any, saturate16(lam[k] - cost_.outside));
                for (int k = 0; k < u.lo; ++k)
                    beyond = std::max(beyond, saturate16(lam[k] - cost_.outside));
                for (int k = u.hi; k < win_.du; ++k)
                    beyond = std::max(beyond, saturate16(lam[k] - cost_.outside));
                any_[l] = any;
                beyond_[l] = beyond;
            }
            for (int k = 0; k < win_.dv; ++k) {
                Value* to = best(r, k);
                if (v.contains(k))
                    for (int l = 0; l < lanes; ++l) to[l] = std::max(to[l], beyond_[l]);
                else
                    std::memcpy(to, any_, sizeof any_);
            }
        }
        const Value* from = best(r, 0);
        turn(win_.dv, [&](int k, int l, auto* rows) HAMFLOW_INLINE_LAMBDA {
            std::ptrdiff_t at[turned];
            for (int i = 0; i < turned; ++i) at[i] = pixel_[r][l + i] * win_.dv;
            const auto zero = C::set1(0);
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                rows[i] = C::subs(
                    zero, C::loadu(from + std::size_t(k + i) * lanes + l));
            });
            Turn<C>::transpose(rows);
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                C::store_pieces(out_ + k, at + i, rows[i]);
            });
        });
        if (win_.dv < group)
            for (int k = 0; k < win_.dv; ++k)
                for (int l = 0; l < lanes; ++l)
                    out_[pixel_[r][l] * win_.dv + k] = saturate16(-from[k * lanes + l]);
    }

    BitsPair p_;
    Window win_;
    FixedCost cost_;
    typename B::Scale scale_;
    const Value* lam_;
    Value* out_;
    int y_ = 0, rows_ = 0, x0_ = 0, lo_ = 0, hi_ = 0;
    bool inside_ = false;
    LabelRange v_[2] = {};
    std::ptrdiff_t pixel_[2][lanes];
    alignas(64) Value any_[lanes], beyond_[lanes];
    Buffer<std::uint8_t> own_;   // planes of both rows
    Buffer<std::uint64_t> row_;
    Buffer<Value> offsets_;      // [row][label u][lane]
    Buffer<Value> best_;         // [row][label v, and a spare one][lane]
};

template <class B, class C>
void message_abreast(const BitsPair& p, const Window& win, const FixedCost& cost,
                     const std::int16_t* lam, std::int16_t* out) {
    using Tile = MessageTile<B, C>;
    const std::size_t row_bytes = B::planes * Tile::stride(p.w);
    Buffer<std::uint8_t> targets(row_bytes * p.h);
    parallel_for(p.h, [&](int y) {
        Buffer<std::uint64_t> row(std::size_t(p.w) * p.words);
        Tile::build_planes(p, p.bits1, y, row.data(), targets.data() + row_bytes * y);
    });
    const int pairs = (p.h + 1) / 2;
    std::atomic<int> next{0};
    parallel_for(std::min(pairs, get_num_threads()), [&](int) {
        Tile tile(p, win, cost, lam, out);
        for (int pair = next++; pair < pairs; pair = next++) tile.run(2 * pair, targets.data());
    });
}
