// c^u and c^v from packed bits (eqs. 4a and 4b of the paper, model QQ), with the inner argmins on
// request.

// --- c^u and c^v ---------------------------------------------------------------------------------

template <class B>
class MinSink {
   public:
    MinSink(const BitsPair& p, const Window& win, std::uint8_t outside, std::uint8_t* cu,
            std::uint8_t* cv)
        : p_(p), win_(win), outside_(outside), cu_(cu), cv_(cv),
          padded_(round_up(win.du, B::lanes)), masks_(padded_),
          best_u_(std::size_t(2) * columns * padded_),
          rows_(std::size_t(2) * columns * B::lanes, 0xff),
          best_v_(std::size_t(2) * (win.dv + 1) * columns) {}

    struct Row { typename B::V a, b; };

    void begin(const Tile<B>& tile) {
        masks_.begin(tile);
        std::memset(best_u_.data(), 0xff, best_u_.size());
    }
    HAMFLOW_INLINE Row row(int i, int, bool first) const {
        if (first) return {B::set1(0xff), B::set1(0xff)};
        const std::uint8_t* r = rows_.data() + (2 * i) * B::lanes;
        return {B::load(r), B::load(r + B::lanes)};
    }

    template <bool P0, bool P1, int N>
    HAMFLOW_INLINE void consume(Row& r, int i, int j, typename B::V* da, typename B::V* db) {
        if (masks_.edge[i]) {
            if (P0) masks_.template apply<N>(i, j, da);
            if (P1) masks_.template apply<N>(i, j, db);
        }
        std::uint8_t* a = best_u_.data() + (2 * i) * padded_ + j * B::lanes;
        std::uint8_t* b = a + padded_;
        unroll<N>([&](auto q) HAMFLOW_INLINE_LAMBDA {
            if (P0) {
                B::store(a + q * B::lanes, B::min(B::load(a + q * B::lanes), da[q]));
                r.a = B::min(r.a, da[q]);
            }
            if (P1) {
                B::store(b + q * B::lanes, B::min(B::load(b + q * B::lanes), db[q]));
                r.b = B::min(r.b, db[q]);
            }
        });
    }
    HAMFLOW_INLINE void end_row(const Row& r, int i) {
        B::store(rows_.data() + (2 * i) * B::lanes, r.a);
        B::store(rows_.data() + (2 * i + 1) * B::lanes, r.b);
    }
    template <bool P0, bool P1>
    HAMFLOW_INLINE void end_target_row(int k) {
        // The row that does not exist for one of the two goes to a spare place.
        std::uint8_t* a = best_v_.data() + (P0 ? k : win_.dv) * columns;
        std::uint8_t* b = best_v_.data() + (win_.dv + 1 + (P1 ? k - 1 : win_.dv)) * columns;
        B::row_minima(rows_.data(), a, b);
    }

    void finish(const Tile<B>& tile) {
        for (int p = 0; p < 1 + tile.has_second; ++p) {
            const LabelRange v = tile.v[p];
            std::uint8_t* cv = cv_ + p_.pixel(tile.x0, tile.y + p) * win_.dv;
            const std::uint8_t* best = best_v_.data() + p * (win_.dv + 1) * columns;
            transpose_columns(best + v.lo * columns, columns, v.hi - v.lo, tile.n, cv + v.lo,
                              p_.step_x * win_.dv);
            for (int i = 0; i < tile.n; ++i) {
                const LabelRange u = tile.u[i];
                // What lies outside competes with what lies inside.
                std::uint8_t* cvi = cv + i * p_.step_x * win_.dv;
                std::memset(cvi, outside_, v.lo);
                std::memset(cvi + v.hi, outside_, win_.dv - v.hi);
                if (u.empty())
                    std::memset(cvi, outside_, win_.dv);
                else if (!u.covers(win_.du))
                    for (int k = v.lo; k < v.hi; ++k) cvi[k] = std::min(cvi[k], outside_);

                std::uint8_t* cui = cu_ + p_.pixel(tile.x0 + i, tile.y + p) * win_.du;
                const std::uint8_t* from = best_u_.data() + (2 * i + p) * padded_;
                std::memset(cui, outside_, u.lo);
                std::memset(cui + u.hi, outside_, win_.du - u.hi);
                std::memcpy(cui + u.lo, from + u.lo, u.hi - u.lo);
                if (!v.covers(win_.dv))
                    for (int k = u.lo; k < u.hi; ++k) cui[k] = std::min(cui[k], outside_);
            }
        }
    }

   private:
    static constexpr int columns = Tile<B>::columns;
    BitsPair p_;
    Window win_;
    std::uint8_t outside_;
    std::uint8_t *cu_, *cv_;
    int padded_;
    EdgeMasks<B> masks_;
    Buffer<std::uint8_t> best_u_;  // [column][p][label u]
    Buffer<std::uint8_t> rows_;    // [column][p][lane]: minima over this target row's vectors
    Buffer<std::uint8_t> best_v_;  // [p][label v, and a spare one][column]
};

// --- with the inner argmins v_hat(u), u_hat(v) ------------------------------------------------

// Ties go to the smallest label: rows and vectors arrive in ascending order, and only a strictly
// smaller distance replaces an earlier one.
template <class B>
class ArgMinSink {
   public:
    ArgMinSink(const BitsPair& p, const Window& win, std::uint8_t outside, std::uint8_t* cu,
               std::uint8_t* cv, std::int16_t* v_hat, std::int16_t* u_hat)
        : p_(p), win_(win), outside_(outside), cu_(cu), cv_(cv), v_hat_(v_hat), u_hat_(u_hat),
          padded_(round_up(win.du, B::lanes)), masks_(padded_),
          best_u_(std::size_t(2) * columns * padded_), arg_u_(best_u_.size()),
          rows_(std::size_t(2) * columns * B::lanes, 0xff), row_args_(rows_.size()),
          best_v_(std::size_t(2) * columns * win.dv), arg_v_(best_v_.size()) {}

    struct Row { typename B::V a, b, arg_a, arg_b; };

    void begin(const Tile<B>& tile) {
        n_ = tile.n;
        // A byte holds a vector's number relative to the tile's first: windows are that narrow.
        j_begin_ = tile.j_begin;
        masks_.begin(tile);
        std::memset(best_u_.data(), 0xff, best_u_.size());
        arg_u_.fill(0);
    }
    HAMFLOW_INLINE Row row(int i, int k, bool first) {
        k_ = k;
        if (first) return {B::set1(0xff), B::set1(0xff), B::set1(0), B::set1(0)};
        const std::uint8_t* r = rows_.data() + (2 * i) * B::lanes;
        const std::uint8_t* a = row_args_.data() + (2 * i) * B::lanes;
        return {B::load(r), B::load(r + B::lanes), B::load(a), B::load(a + B::lanes)};
    }

    template <bool P0, bool P1, int N>
    HAMFLOW_INLINE void consume(Row& r, int i, int j, typename B::V* da, typename B::V* db) {
        if (masks_.edge[i]) {
            if (P0) masks_.template apply<N>(i, j, da);
            if (P1) masks_.template apply<N>(i, j, db);
        }
        const std::ptrdiff_t at = std::ptrdiff_t(2 * i) * padded_ + j * B::lanes;
        unroll<N>([&](auto q) HAMFLOW_INLINE_LAMBDA {
            const typename B::V vector = B::set1(static_cast<std::uint8_t>(j + q - j_begin_));
            const std::ptrdiff_t a = at + q * B::lanes, b = a + padded_;
            if (P0) {
                B::keep_min(best_u_.data() + a, arg_u_.data() + a, da[q],
                            static_cast<std::int16_t>(k_));
                B::keep_min(r.a, r.arg_a, da[q], vector);
            }
            if (P1) {
                B::keep_min(best_u_.data() + b, arg_u_.data() + b, db[q],
                            static_cast<std::int16_t>(k_ - 1));
                B::keep_min(r.b, r.arg_b, db[q], vector);
            }
        });
    }
    HAMFLOW_INLINE void end_row(const Row& r, int i) {
        std::uint8_t* rows = rows_.data() + (2 * i) * B::lanes;
        std::uint8_t* args = row_args_.data() + (2 * i) * B::lanes;
        B::store(rows, r.a);
        B::store(rows + B::lanes, r.b);
        B::store(args, r.arg_a);
        B::store(args + B::lanes, r.arg_b);
    }
    template <bool P0, bool P1>
    HAMFLOW_INLINE void end_target_row(int k) {
        for (int i = 0; i < n_; ++i) {
            if (P0) reduce_row(2 * i, k);
            if (P1) reduce_row(2 * i + 1, k - 1);
        }
    }

    void finish(const Tile<B>& tile) {
        for (int p = 0; p < 1 + tile.has_second; ++p) {
            for (int i = 0; i < tile.n; ++i) {
                const std::size_t pixel = p_.pixel(tile.x0 + i, tile.y + p);
                finish_u(tile.u[i], tile.v[p], 2 * i + p, pixel);
                finish_v(tile.u[i], tile.v[p], 2 * i + p, pixel);
            }
        }
    }

   private:
    // The lanes' candidates (distance, vector) to the smallest distance and label of the row.
    HAMFLOW_INLINE void reduce_row(int slot, int k) {
        const std::uint8_t* d = rows_.data() + slot * B::lanes;
        const std::uint8_t* arg = row_args_.data() + slot * B::lanes;
        int best = 0x7fffffff;
        for (int lane = 0; lane < B::lanes; ++lane) {
            const int key = (d[lane] << 16) | (arg[lane] * B::lanes + lane);
            best = std::min(best, key);
        }
        best_v_[static_cast<std::size_t>(slot) * win_.dv + k] =
            static_cast<std::uint8_t>(best >> 16);
        arg_v_[static_cast<std::size_t>(slot) * win_.dv + k] =
            static_cast<std::int16_t>((best & 0xffff) + j_begin_ * B::lanes);
    }

    // `count` labels, of which `inside` have candidates of their own; every one of them competes
    // with what lies outside in the other component (first such label: other_outside, or none).
    struct Best { std::uint8_t distance; std::int16_t label; };
    HAMFLOW_INLINE Best against_outside(Best b, int other_outside, int other_count) const {
        if (other_outside < other_count &&
            (outside_ < b.distance || (outside_ == b.distance && other_outside < b.label)))
            return {outside_, static_cast<std::int16_t>(other_outside)};
        return b;
    }

    void finish_u(LabelRange u, LabelRange v, int slot, std::size_t pixel) const {
        std::uint8_t* cu = cu_ + pixel * win_.du;
        std::int16_t* v_hat = v_hat_ + pixel * win_.du;
        const int first_outside = v.first_outside(win_.dv);
        for (int k = 0; k < win_.du; ++k) {
            Best b{outside_, 0};
            if (u.contains(k) && !v.empty()) {
                const std::size_t base = static_cast<std::size_t>(slot) * padded_;
                const int block = k / B::lanes * B::lanes;
                b = against_outside(
                    {best_u_[base + k], arg_u_[base + block + B::index_position(k - block)]},
                    first_outside, win_.dv);
            }
            cu[k] = b.distance;
            v_hat[k] = b.label;
        }
    }

    void finish_v(LabelRange u, LabelRange v, int slot, std::size_t pixel) const {
        std::uint8_t* cv = cv_ + pixel * win_.dv;
        std::int16_t* u_hat = u_hat_ + pixel * win_.dv;
        const int first_outside = u.first_outside(win_.du);
        for (int k = 0; k < win_.dv; ++k) {
            Best b{outside_, 0};
            const std::size_t at = static_cast<std::size_t>(slot) * win_.dv + k;
            if (v.contains(k) && !u.empty())
                b = against_outside({best_v_[at], arg_v_[at]}, first_outside, win_.du);
            cv[k] = b.distance;
            u_hat[k] = b.label;
        }
    }

    static constexpr int columns = Tile<B>::columns;
    BitsPair p_;
    Window win_;
    std::uint8_t outside_;
    std::uint8_t *cu_, *cv_;
    std::int16_t *v_hat_, *u_hat_;
    int padded_;
    EdgeMasks<B> masks_;
    int n_ = 0, j_begin_ = 0, k_ = 0;
    Buffer<std::uint8_t> best_u_;     // [column][p][label u]
    Buffer<std::int16_t> arg_u_;      // the same, in the order of index_position
    Buffer<std::uint8_t> rows_;       // [column][p][lane]
    Buffer<std::uint8_t> row_args_;   // the same: number of the vector
    Buffer<std::uint8_t> best_v_;     // [column][p][label v]
    Buffer<std::int16_t> arg_v_;
};

// The lanes are labels u, so a window that is high and narrow is better seen transposed.
HAMFLOW_INLINE bool better_transposed(const Window& win) {
    const auto vectors = [](int lanes_along, int other) {
        return static_cast<long long>(round_up(lanes_along, Bits<1>::lanes)) * other;
    };
    return vectors(win.dv, win.du) < vectors(win.du, win.dv);
}

#include "min_projection_abreast.inl"

void min_projection(const BitsPair& p, const Window& win, std::uint8_t outside, std::uint8_t* cu,
                    std::uint8_t* cv, std::int16_t* v_hat, std::int16_t* u_hat) {
    const bool abreast = Bits<1>::pixels_abreast && !v_hat && p.w >= Bits<1>::lanes;
    if (!abreast && better_transposed(win)) {
        // Transposed again only if that were better still, which it is not.
        min_projection(p.transposed(), win.transposed(), outside, cv, cu, u_hat, v_hat);
        return;
    }
    with_words(p, [&](auto words) {
        using B = Bits<decltype(words)::value>;
        if constexpr (B::pixels_abreast) {
            if (abreast)
                return for_each_pixel_tile<MinTile<B>>(
                    p, B::planes, [&] { return MinTile<B>(p, win, outside, cu, cv); });
        }
        if (v_hat && u_hat)
            for_each_tile<B>(p, win, [&] {
                return ArgMinSink<B>(p, win, outside, cu, cv, v_hat, u_hat);
            });
        else
            for_each_tile<B>(p, win, [&] { return MinSink<B>(p, win, outside, cu, cv); });
    });
}
