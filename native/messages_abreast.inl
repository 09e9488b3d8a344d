// The int16 messages of messages.inl with a pixel in each lane (pixel_tiles.inl). The best over the
// sender's labels is in registers for the message to the plane v, in the first-level cache for the
// one to u: neither the image nor the window has to be turned. C turns the volumes (turn.inl).

template <class B, class C, bool to_v>
class MessageTile : public PixelTile<B, MessageTile<B, C, to_v>> {
    using Base = PixelTile<B, MessageTile<B, C, to_v>>;
    friend Base;
    using Value = std::int16_t;
    using V = typename B::V;
    static constexpr int lanes = B::lanes, parts = 2, part = B::lanes16;
    static constexpr int group = C::group, turned = C::width;
    using Base::p_, Base::win_, Base::y_, Base::rows_, Base::x0_, Base::lo_, Base::hi_,
        Base::inside_, Base::v_;

   public:
    MessageTile(const BitsPair& p, const Window& win, const FixedCost& cost, const Value* lam,
                Value* out)
        : Base(p, win), cost_(cost), scale_(cost.step), lam_(lam), out_(out),
          senders_(to_v ? win.du : win.dv), receivers_(to_v ? win.dv : win.du),
          offsets_(std::size_t(2) * (senders_ + 1) * lanes),
          best_(std::size_t(2) * (receivers_ + 1) * lanes) {
        for (int l = 0; l < lanes; ++l) column_[l] = static_cast<Value>(B::pixel_of16(l));
    }

   private:
    // Of label k, or of the one after the last, which is nobody's.
    HAMFLOW_INLINE Value* offsets(int r, int k) {
        return offsets_.data() + (std::size_t(r) * (senders_ + 1) + k) * lanes;
    }
    HAMFLOW_INLINE Value* best(int r, int k) {
        return best_.data() + (std::size_t(r) * (receivers_ + 1) + k) * lanes;
    }
    // values[l] = body(l) for the lanes whose target column with label u is outside.
    template <class Body>
    HAMFLOW_INLINE void where_outside(int u, Value* values, const Body& body) const {
        const auto inside = this->columns_inside(u);
        for (int l = 0; l < lanes; ++l)
            values[l] = column_[l] < inside.from || column_[l] >= inside.to ? body(l) : values[l];
    }

    void begin() {
        for (int r = 0; r < rows_; ++r) {
            for (int l = 0; l < lanes; ++l)
                pixel_[r][l] = static_cast<std::ptrdiff_t>(p_.pixel(x0_ + column_[l], y_ + r));
            set_offsets(r);
            if (!to_v) std::fill_n(best(r, 0), std::size_t(receivers_) * lanes, Value(-32768));
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
        const std::size_t step = Base::stride(p_.w);
        V a[B::planes], b[B::planes];
        unroll<B::planes>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            if (P0) a[p] = this->own(0, p);
            if (P1) b[p] = this->own(1, p);
        });
        // To v the best so far, to u what the label v says.
        V kept_a[parts], kept_b[parts];
        const V loses = B::set1_16(-32768);
        unroll<parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            kept_a[h] = to_v || !P0 ? loses : B::load16(offsets(0, k) + h * part);
            kept_b[h] = to_v || !P1 ? loses : B::load16(offsets(1, k - 1) + h * part);
        });
        const std::uint8_t* t = this->first_target(row);
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

    FixedCost cost_;
    typename B::Scale scale_;
    const Value* lam_;
    Value* out_;
    int senders_, receivers_;  // labels
    std::ptrdiff_t pixel_[2][lanes];
    alignas(64) Value column_[lanes];  // of each lane in the tile: even ones first
    Buffer<Value> offsets_;  // [row][label of the sender, and a spare one][lane]
    Buffer<Value> best_;     // [row][label of the receiver, and a spare one][lane]
};

template <class B, class C, bool to_v>
void message_abreast(const BitsPair& p, const Window& win, const FixedCost& cost,
                     const std::int16_t* lam, std::int16_t* out) {
    using Tile = MessageTile<B, C, to_v>;
    for_each_pixel_tile<Tile>(p, B::planes, [&] { return Tile(p, win, cost, lam, out); });
}
