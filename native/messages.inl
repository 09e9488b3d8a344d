// The messages between the planes of the CRF, from packed bits on the fly, in two arithmetics:
// lam_v(v) := min_u [c(u, v) - lam_u(u)] (eq. 8 of the paper), and the same with u and v exchanged
// (eq. 9).
//
// Erratum: the paper prints both as lam += min [...], which is right only while lam is 0. Used
// literally, it lowers the bound from the second outer iteration on. A message is an assignment.
//
// int16, fixed point: c = step * distance + base. What is computed is the maximum of
// N = (lam - base) - step * distance, every sum saturating, and the message is -N; the caller
// keeps the range so small that nothing saturates.
// float32: the minimum of distance - lam / step, scaled back at the end.

template <class B>
struct Fixed16 {
    using Value = std::int16_t;
    using Cost = FixedCost;
    using R = typename B::V;
    static constexpr int lanes = B::lanes16;
    static constexpr int parts = 2;  // of a vector of distances
    static constexpr Value worst = -32768;

    Cost cost;
    typename B::Scale scale;
    explicit Fixed16(const Cost& c) : cost(c), scale(c.step) {}

    static int position(int lane) { return B::position16(lane); }
    static HAMFLOW_INLINE R load(const Value* p) { return B::load16(p); }
    static HAMFLOW_INLINE void store(Value* p, R v) { B::store16(p, v); }
    static HAMFLOW_INLINE R set1(Value x) { return B::set1_16(x); }
    static HAMFLOW_INLINE R better(R a, R b) { return B::max16(a, b); }
    static HAMFLOW_INLINE void best_lanes(const Value* rows, int n, Value* out_a, Value* out_b) {
        B::row_maxima16(rows, n, out_a, out_b);
    }
    HAMFLOW_INLINE void widen(typename B::D d, R* out) const {
        out[0] = B::scaled16(d, scale, 0);
        out[1] = B::scaled16(d, scale, 1);
    }
    HAMFLOW_INLINE R candidate(R part, R offset) const { return B::minus_scaled16(offset, part); }

    static constexpr Value loses = -32768;  // an offset that no other loses to
    Value offset(Value lam) const { return saturate16(lam - cost.base); }
    Value inside(Value best) const { return best; }
    Value outside(Value lam) const { return saturate16(lam - cost.outside); }
    static Value better(Value a, Value b) { return a > b ? a : b; }
    static Value message(Value best) { return saturate16(-best); }
};

template <class B>
struct Float32 {
    using Value = float;
    using Cost = FloatCost;
    using R = typename B::F;
    static constexpr int lanes = B::lanes32;
    static constexpr int parts = B::f32_parts;
    static constexpr Value worst = std::numeric_limits<float>::infinity();

    Cost cost;
    explicit Float32(const Cost& c) : cost(c) {}

    static int position(int lane) { return B::position32(lane); }
    static HAMFLOW_INLINE R load(const Value* p) { return B::load32(p); }
    static HAMFLOW_INLINE void store(Value* p, R v) { B::store32(p, v); }
    static HAMFLOW_INLINE R set1(Value x) { return B::set1_32(x); }
    static HAMFLOW_INLINE R better(R a, R b) { return B::min32(a, b); }
    static HAMFLOW_INLINE void best_lanes(const Value* rows, int n, Value* out_a, Value* out_b) {
        for (int i = 0; i < n; ++i, rows += 2 * lanes) {
            out_a[i] = B::horizontal_min32(load(rows));
            out_b[i] = B::horizontal_min32(load(rows + lanes));
        }
    }
    HAMFLOW_INLINE void widen(typename B::D d, R* out) const { B::to_f32(d, out); }
    HAMFLOW_INLINE R candidate(R part, R offset) const { return B::sub32(part, offset); }

    static constexpr Value loses = -std::numeric_limits<float>::infinity();
    // In units of the distance, to which B::f32_offset is added.
    Value offset(Value lam) const { return lam / cost.step; }
    Value inside(Value best) const { return (best - B::f32_offset) * cost.step + cost.base; }
    Value outside(Value lam) const { return cost.outside - lam; }
    static Value better(Value a, Value b) { return a < b ? a : b; }
    static Value message(Value best) { return best; }
};

template <class B, class A>
class MessageSink {
    using Value = typename A::Value;
    using R = typename A::R;
    static constexpr int columns = Tile<B>::columns;

   public:
    MessageSink(const BitsPair& p, const Window& win, const typename A::Cost& cost,
                const Value* lam, Value* out)
        : p_(p), win_(win), a_(cost), lam_(lam), out_(out), padded_(round_up(win.du, B::lanes)),
          offsets_(std::size_t(2) * columns * padded_),
          rows_(std::size_t(2) * columns * A::lanes, A::worst),
          best_(std::size_t(2) * columns * (win.dv + 1)) {}

    struct Row { R a, b; };

    void begin(const Tile<B>& tile) {
        n_ = tile.n;
        for (int p = 0; p < 1 + tile.has_second; ++p) {
            for (int i = 0; i < tile.n; ++i) {
                const Value* lam = lam_ + p_.pixel(tile.x0 + i, tile.y + p) * win_.du;
                Value* to = offsets_.data() + std::size_t(2 * i + p) * padded_;
                // The offset of a label outside of the image makes it lose here.
                for (int k = 0; k < padded_; ++k) to[k] = A::loses;
                for (int k = tile.u[i].lo; k < tile.u[i].hi; ++k)
                    to[lane_position(k)] = a_.offset(lam[k]);
            }
        }
    }
    HAMFLOW_INLINE Row row(int i, int, bool first) const {
        if (first) return {A::set1(A::worst), A::set1(A::worst)};
        const Value* r = rows_.data() + (2 * i) * A::lanes;
        return {A::load(r), A::load(r + A::lanes)};
    }
    template <bool P0, bool P1, int N>
    HAMFLOW_INLINE void consume(Row& r, int i, int j, typename B::D* da, typename B::D* db) {
        const Value* a = offsets_.data() + std::ptrdiff_t(2 * i) * padded_ + j * B::lanes;
        unroll<N>([&](auto q) HAMFLOW_INLINE_LAMBDA {
            if (P0) add(r.a, a + q * B::lanes, da[q]);
            if (P1) add(r.b, a + padded_ + q * B::lanes, db[q]);
        });
    }
    HAMFLOW_INLINE void end_row(const Row& r, int i) {
        A::store(rows_.data() + (2 * i) * A::lanes, r.a);
        A::store(rows_.data() + (2 * i + 1) * A::lanes, r.b);
    }
    template <bool P0, bool P1>
    HAMFLOW_INLINE void end_target_row(int k) {
        // The row that does not exist for one of the two goes to a spare place.
        Value* a = best_.data() + std::size_t(P0 ? k : win_.dv) * columns;
        Value* b = best_.data() + std::size_t(win_.dv + 1 + (P1 ? k - 1 : win_.dv)) * columns;
        A::best_lanes(rows_.data(), n_, a, b);
    }
    void finish(const Tile<B>& tile) {
        for (int p = 0; p < 1 + tile.has_second; ++p) {
            for (int i = 0; i < tile.n; ++i) {
                const std::size_t pixel = p_.pixel(tile.x0 + i, tile.y + p);
                const LabelRange u = tile.u[i], v = tile.v[p];
                const Outside outside = best_outside(lam_ + pixel * win_.du, u);
                const Value* best = best_.data() + std::size_t(p) * (win_.dv + 1) * columns + i;
                Value* out = out_ + pixel * win_.dv;
                for (int k = 0; k < win_.dv; ++k) out[k] = A::message(outside.any);
                if (u.empty()) continue;
                for (int k = v.lo; k < v.hi; ++k)
                    out[k] = A::message(
                        A::better(a_.inside(best[std::size_t(k) * columns]), outside.beyond));
            }
        }
    }

   private:
    HAMFLOW_INLINE void add(R& r, const Value* offsets, typename B::D d) const {
        R part[A::parts];
        a_.widen(d, part);
        unroll<A::parts>([&](auto h) HAMFLOW_INLINE_LAMBDA {
            r = A::better(r, a_.candidate(part[h], A::load(offsets + h * A::lanes)));
        });
    }

    // The best candidates outside of the image: over all labels u, and over those not `inside`.
    struct Outside { Value any, beyond; };
    Outside best_outside(const Value* lam, LabelRange inside) const {
        Outside o{A::worst, A::worst};
        for (int k = 0; k < win_.du; ++k) o.any = A::better(o.any, a_.outside(lam[k]));
        for (int k = 0; k < inside.lo; ++k) o.beyond = A::better(o.beyond, a_.outside(lam[k]));
        for (int k = inside.hi; k < win_.du; ++k)
            o.beyond = A::better(o.beyond, a_.outside(lam[k]));
        return o;
    }
    static std::ptrdiff_t lane_position(int k) {
        const int block = k / B::lanes * B::lanes;
        return block + A::position(k - block);
    }

    BitsPair p_;
    Window win_;
    A a_;
    const Value* lam_;
    Value* out_;
    int padded_;
    int n_ = 0;
    Buffer<Value> offsets_;  // [column][p][label u, in the order of lane_position]
    Buffer<Value> rows_;     // [column][p][lane]
    Buffer<Value> best_;     // [p][label v, and a spare one][column]
};

// To the plane u the same with u and v swapped: transposed, its minimum too is one over lanes in
// registers, and one sink serves both directions. Running minima for each u in memory, a sink of
// their own, were no faster.
template <class B, class A>
void send_message(const BitsPair& p, const Window& win, Direction to,
                  const typename A::Cost& cost, const typename A::Value* lam,
                  typename A::Value* out) {
    if (to == Direction::to_u)
        send_message<B, A>(p.transposed(), win.transposed(), Direction::to_v, cost, lam, out);
    else
        for_each_tile<B>(p, win, [&] { return MessageSink<B, A>(p, win, cost, lam, out); });
}

#include "messages_abreast.inl"

void message16(const BitsPair& p, const Window& win, Direction to, const FixedCost& cost,
               const std::int16_t* lam, std::int16_t* out) {
    with_words(p, [&](auto words) {
        using B = Bits<decltype(words)::value>;
        if constexpr (B::pixels_abreast) {
            if (p.w >= B::lanes && to == Direction::to_u)
                return message_abreast<B, Chains16, false>(p, win, cost, lam, out);
            if (p.w >= B::lanes)
                return message_abreast<B, Chains16, true>(p, win, cost, lam, out);
        }
        send_message<B, Fixed16<B>>(p, win, to, cost, lam, out);
    });
}

void message32(const BitsPair& p, const Window& win, Direction to, const FloatCost& cost,
               const float* lam, float* out) {
    with_words(p, [&](auto words) {
        using B = BitsF32<decltype(words)::value>;
        send_message<B, Float32<B>>(p, win, to, cost, lam, out);
    });
}
