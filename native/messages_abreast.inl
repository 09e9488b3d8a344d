// The int16 messages of messages.inl with a pixel in each lane, in tiles of B::lanes pixels of two
// rows: whatever the window's size, no lane is empty, the pixels' own bits stay in registers for
// a whole row of targets, and the maximum over the sender's labels is one of vectors: in registers
// for the message to the plane v, in the first-level cache for the one to u. For levels that
// count the bits of a vector of bytes with one instruction; where tables of a pixel are faster, the
// lanes have to be labels. C turns volumes (turn.inl).

template <class B, class C, bool to_v>
class MessageTile {
    using Value = std::int16_t;
    using V = typename B::V;
    static constexpr int lanes = B::lanes, parts = 2, part = B::lanes16;
    static constexpr int group = C::group, turned = C::width;

   public:
    MessageTile(const BitsPair& p, const Window& win, const FixedCost& cost, const Value* lam,
                Value* out)
        : p_(p), win_(win), cost_(cost), scale_(cost.step), lam_(lam), out_(out),
          senders_(to_v ? win.du : win.dv), receivers_(to_v ? win.dv : win.du),
          own_(std::size_t(2) * B::planes * stride(p.w)), row_(std::size_t(p.w) * p.words),
          offsets_(std::size_t(2) * (senders_ + 1) * lanes),
          best_(std::size_t(2) * (receivers_ + 1) * lanes) {
        for (int l = 0; l < lanes; ++l) column_[l] = static_cast<Value>(B::pixel_of16(l));
    }

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
    // Of label k, or of the one after the last, which is nobody's.
    HAMFLOW_INLINE Value* offsets(int r, int k) {
        return offsets_.data() + (std::size_t(r) * (senders_ + 1) + k) * lanes;
    }
    HAMFLOW_INLINE Value* best(int r, int k) {
        return best_.data() + (std::size_t(r) * (receivers_ + 1) + k) * lanes;
    }
    // values[l] = body(values[l]) for the lanes whose target column with label u is outside.
    template <class Body>
    HAMFLOW_INLINE void where_outside(int u, Value* values, const Body& body) const {
        const long long start = static_cast<long long>(x0_) + win_.u0 + u;
        const auto bound = [](long long x) {
            return static_cast<Value>(std::clamp<long long>(x, -1, lanes));
        };
        const Value from = bound(-start), to = bound(p_.w - start);
        for (int l = 0; l < lanes; ++l)
            values[l] = column_[l] < from || column_[l] >= to ? body(l) : values[l];
    }

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
                pixel_[r][l] = static_cast<std::ptrdiff_t>(p_.pixel(x0 + column_[l], y_ + r));
            set_offsets(r);
            if (!to_v) std::fill_n(best(r, 0), std::size_t(receivers_) * lanes, Value(-32768));
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

    // lam - base of each label and lane; where the target column is outside, what loses.
    void set_offsets(int r) {
        turn(senders_, [&](int k, int l, auto* rows) HAMFLOW_INLINE_LAMBDA {
            std::ptrdiff_t at[turned];
            for (int i = 0; i < turned; ++i) at[i] = pixel_[r][l + i] * senders_;
            const auto base = C::set1(static_cast<Value>(cost_.base));
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                rows[i] = C::subs(C::load_pieces(lam_ + k, at + i), base);
            });
            Turn<C>::transpose(rows);
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                C::storeu(offsets(r, k + i) + l, rows[i]);
            });
        });
        for (int k = 0; senders_ < group && k < senders_; ++k)
            for (int l = 0; l < lanes; ++l)
                offsets(r, k)[l] = saturate16(lam_[pixel_[r][l] * senders_ + k] - cost_.base);
        for (int k = lo_; to_v && !inside_ && k < hi_; ++k)
            where_outside(k, offsets(r, k), [](int) HAMFLOW_INLINE_LAMBDA { return Value(-32768); });
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
        // To v the best so far, to u what the label v says.
        V kept_a[parts], kept_b[parts];
        const V loses = B::set1_16(-32768);
        unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            kept_a[h] = to_v || !P0 ? loses : B::load16(offsets(0, k) + h * part);
            kept_b[h] = to_v || !P1 ? loses : B::load16(offsets(1, k - 1) + h * part);
        });
        const std::uint8_t* t = row + lanes + x0_ + win_.u0 + lo_;
        Value* at_a = to_v ? offsets(0, lo_) : best(0, lo_);
        Value* at_b = to_v ? offsets(1, lo_) : best(1, lo_);
        for (int u = lo_; u < hi_; ++u, ++t, at_a += lanes, at_b += lanes) {
            V da, db;
            unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                const V q = B::load_target(t + p * step);
                if (P0) da = p ? B::plus_count(da, q, a[p]) : B::count(q, a[p]);
                if (P1) db = p ? B::plus_count(db, q, b[p]) : B::count(q, b[p]);
            });
            const auto compare = [&](V& kept, Value* at, V d, int h) HAMFLOW_INLINE_LAMBDA {
                const V stored = B::load16(at + h * part), scaled = B::scaled16(d, scale_, h);
                if (to_v)
                    kept = B::max16(kept, B::minus_scaled16(stored, scaled));
                else
                    B::store16(at + h * part, B::max16(stored, B::minus_scaled16(kept, scaled)));
            };
            unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
                if (P0) compare(kept_a[h], at_a, da, h);
                if (P1) compare(kept_b[h], at_b, db, h);
            });
        }
        if (!to_v) return;
        unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            if (P0) B::store16(best(0, k) + h * part, kept_a[h]);
            if (P1) B::store16(best(1, k - 1) + h * part, kept_b[h]);
        });
    }

    // What lies outside competes with what lies inside; then back to the order of the volume.
    void finish(int r) {
        if (!inside_ || !v_[r].covers(win_.dv)) compete(r);
        turn(receivers_, [&](int k, int l, auto* rows) HAMFLOW_INLINE_LAMBDA {
            std::ptrdiff_t at[turned];
            for (int i = 0; i < turned; ++i) at[i] = pixel_[r][l + i] * receivers_;
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                rows[i] = C::subs(C::set1(0), C::loadu(best(r, k + i) + l));
            });
            Turn<C>::transpose(rows);
            unroll<group>([&](auto i) HAMFLOW_INLINE_LAMBDA {
                C::store_pieces(out_ + k, at + i, rows[i]);
            });
        });
        for (int k = 0; receivers_ < group && k < receivers_; ++k)
            for (int l = 0; l < lanes; ++l)
                out_[pixel_[r][l] * receivers_ + k] = saturate16(-best(r, k)[l]);
    }
    void compete(int r) {
        // The best of the sender's labels outside of the image: of all, for a label of the
        // receiver that is itself outside, and of those beyond its ends.
        alignas(64) Value any[lanes], beyond[lanes];
        for (int l = 0; l < lanes; ++l) {
            const LabelRange sent = to_v ? u_labels(win_, x0_ + column_[l], p_.w) : v_[r];
            const Value* lam = lam_ + pixel_[r][l] * senders_;
            const auto most = [&](int from, int to) {
                Value best = -32768;
                for (int k = from; k < to; ++k) best = std::max(best, lam[k]);
                return from < to ? saturate16(best - cost_.outside) : Value(-32768);
            };
            any[l] = most(0, senders_);
            beyond[l] = std::max(most(0, sent.lo), most(sent.hi, senders_));
        }
        for (int k = 0; k < receivers_; ++k) {
            Value* to = best(r, k);
            if (to_v ? !v_[r].contains(k) : v_[r].empty()) {
                std::memcpy(to, any, sizeof any);
                continue;
            }
            for (int l = 0; l < lanes; ++l) to[l] = std::max(to[l], beyond[l]);
            if (!to_v && !inside_)
                where_outside(k, to, [&](int l) HAMFLOW_INLINE_LAMBDA { return any[l]; });
        }
    }

    BitsPair p_;
    Window win_;
    FixedCost cost_;
    typename B::Scale scale_;
    const Value* lam_;
    Value* out_;
    int senders_, receivers_;  // labels
    int y_ = 0, rows_ = 0, x0_ = 0, lo_ = 0, hi_ = 0;
    bool inside_ = false;
    LabelRange v_[2] = {};
    std::ptrdiff_t pixel_[2][lanes];
    alignas(64) Value column_[lanes];  // of each lane in the tile: even ones first
    Buffer<std::uint8_t> own_;   // planes of both rows
    Buffer<std::uint64_t> row_;
    Buffer<Value> offsets_;      // [row][label of the sender, and a spare one][lane]
    Buffer<Value> best_;         // [row][label of the receiver, and a spare one][lane]
};

template <class B, class C, bool to_v>
void message_abreast(const BitsPair& p, const Window& win, const FixedCost& cost,
                     const std::int16_t* lam, std::int16_t* out) {
    using Tile = MessageTile<B, C, to_v>;
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
