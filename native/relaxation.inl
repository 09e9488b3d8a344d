// The linear system of one update of the robust weights, and its relaxation.

struct System {
    System(const Fields& fields, int first)
        : bu(fields[first]), bv(fields[first + 1]), uu(fields[first + 2]), uv(fields[first + 3]),
          vv(fields[first + 4]), right(fields[first + 5]), down(fields[first + 6]) {}
    static constexpr int count = 7;

    Field bu, bv;        // what pulls at a pixel beside its neighbors
    Field uu, uv, vv;    // omega times the inverse of its own 2 x 2 block
    Field right, down;   // couplings to the neighbors, 0 at the border
};

struct State {
    State(const Fields& fields, int first)
        : u(fields[first]), v(fields[first + 1]), du(fields[first + 2]), dv(fields[first + 3]),
          right(fields[first + 4]), down(fields[first + 5]) {}
    static constexpr int count = 6;

    Field u, v, du, dv;  // the flow at the last warp, and its increment
    Field right, down;   // edge weights times alpha / 2, 0 at the border
};

// Call `row` for consecutive rows.
class Assembly {
   public:
    Assembly(const Variational& p, const Board& board, const Forms& forms, const State& state,
             const System& system, int begin)
        : p_(p), board_(board), forms_(forms), state_(state), system_(system),
          next_(std::max(begin - 1, 0)), psi_(3 * 2 * board.stride + 2 * lanes, 0.0f) {}

    void row(int y) {
        for (; next_ <= std::min(y + 1, p_.h - 1); ++next_)
            for (int color = 0; color < 2; ++color) robust(next_, color);
        for (int color = 0; color < 2; ++color) {
            data(y, color);
            couple(y, color);
        }
    }

   private:
    float* psi(int y, int color) {
        return psi_.data() + lanes + ((y + 3) % 3 * 2 + color) * board_.stride;
    }

    // psi' of the smoothness term.
    void robust(int y, int color) {
        const int count = board_.count(y, color), shift = board_.shift(y, color);
        const int other = 1 - color;
        const float e2 = p_.epsilon * p_.epsilon;
        const bool first = y == 0, last = y + 1 == p_.h;
        struct Total {
            const float *__restrict flow, *__restrict step;
            float operator[](int k) const { return flow[k] + step[k]; }
        };
        const auto total = [&](const Field& flow, const Field& step, int row, int c, int from) {
            return Total{flow.row(row, c) + from, step.row(row, c) + from};
        };
        // Beyond the border a pixel stands for its neighbor.
        const int above = first ? y : y - 1, below = last ? y : y + 1;
        const Total ua = total(state_.u, state_.du, above, first ? color : other, 0);
        const Total va = total(state_.v, state_.dv, above, first ? color : other, 0);
        const Total ub = total(state_.u, state_.du, below, last ? color : other, 0);
        const Total vb = total(state_.v, state_.dv, below, last ? color : other, 0);
        const Total ul = total(state_.u, state_.du, y, other, shift - 1);
        const Total vl = total(state_.v, state_.dv, y, other, shift - 1);
        const Total ur = total(state_.u, state_.du, y, other, shift);
        const Total vr = total(state_.v, state_.dv, y, other, shift);
        float* __restrict out = psi(y, color);
        const auto one = [&](float ux, float vx, float uy, float vy) HAMFLOW_INLINE_LAMBDA {
            return 0.5f / std::sqrt(0.25f * (ux * ux + uy * uy + vx * vx + vy * vy) + e2);
        };
        HAMFLOW_INDEPENDENT
        for (int k = 0; k < count; ++k)
            out[k] = one(ur[k] - ul[k], vr[k] - vl[k], ub[k] - ua[k], vb[k] - va[k]);
        const Total u = total(state_.u, state_.du, y, color, 0);
        const Total v = total(state_.v, state_.dv, y, color, 0);
        const auto fix = [&](int k) {
            const int x = 2 * k + shift;
            const float ux = (x + 1 < p_.w ? ur[k] : u[k]) - (x > 0 ? ul[k] : u[k]);
            const float vx = (x + 1 < p_.w ? vr[k] : v[k]) - (x > 0 ? vl[k] : v[k]);
            out[k] = one(ux, vx, ub[k] - ua[k], vb[k] - va[k]);
        };
        if (count == 0) return;
        fix(0);
        fix(count - 1);
    }

    // The data term's part: c (J + J^T) of both groups.
    void data(int y, int color) {
        const int count = board_.count(y, color);
        const float e2 = p_.epsilon * p_.epsilon;
        const float first = 0.5f * p_.strength[0], second = 0.5f * p_.strength[1];
        const float *__restrict du = state_.du.row(y, color);
        const float *__restrict dv = state_.dv.row(y, color);
        const float *__restrict weight = forms_.weight.row(y, color);
        float *__restrict uu = system_.uu.row(y, color);
        float *__restrict uv = system_.uv.row(y, color);
        float *__restrict vv = system_.vv.row(y, color);
        float *__restrict bu = system_.bu.row(y, color);
        float *__restrict bv = system_.bv.row(y, color);
        struct Form {
            const float *__restrict uu, *__restrict uv, *__restrict vv;
            const float *__restrict ut, *__restrict vt, *__restrict tt;
        };
        const auto form = [&](const Field (&terms)[6]) {
            const auto row = [&](int t) { return terms[t].row(y, color); };
            return Form{row(0), row(1), row(2), row(3), row(4), row(5)};
        };
        const Form a = form(forms_.group[0]), b = form(forms_.group[1]);
        const auto robust = [&](const Form& j, float strength, int k) HAMFLOW_INLINE_LAMBDA {
            const float square = j.uu[k] * du[k] * du[k] + j.vv[k] * dv[k] * dv[k] + j.tt[k] +
                                 2 * (j.uv[k] * du[k] * dv[k] + j.ut[k] * du[k] + j.vt[k] * dv[k]);
            // Rounding may make it negative.
            return weight[k] * strength / std::sqrt((square > 0 ? square : 0) + e2);
        };
        HAMFLOW_INDEPENDENT
        for (int k = 0; k < count; ++k) {
            const float c = robust(a, first, k), d = robust(b, second, k);
            uu[k] = c * a.uu[k] + d * b.uu[k];
            uv[k] = c * a.uv[k] + d * b.uv[k];
            vv[k] = c * a.vv[k] + d * b.vv[k];
            bu[k] = -(c * a.ut[k]) - d * b.ut[k];
            bv[k] = -(c * a.vt[k]) - d * b.vt[k];
        }
    }

    // The smoothness term's part: couplings, and what they make of the flow before the increment.
    void couple(int y, int color) {
        const int count = board_.count(y, color), shift = board_.shift(y, color);
        const int other = 1 - color;
        const int above = std::max(y - 1, 0), below = std::min(y + 1, p_.h - 1);
        const float *__restrict here = psi(y, color);
        const float *__restrict side = psi(y, other) + shift;
        const float *__restrict psi_a = psi(above, other);
        const float *__restrict psi_b = psi(below, other);
        const float *__restrict edge_l = state_.right.row(y, other) + shift - 1;
        const float *__restrict edge_r = state_.right.row(y, color);
        const float *__restrict edge_a = state_.down.row(y - 1, other);
        const float *__restrict edge_b = state_.down.row(y, color);
        const float *__restrict u = state_.u.row(y, color);
        const float *__restrict v = state_.v.row(y, color);
        const float *__restrict us = state_.u.row(y, other) + shift;
        const float *__restrict vs = state_.v.row(y, other) + shift;
        const float *__restrict ua = state_.u.row(y - 1, other);
        const float *__restrict va = state_.v.row(y - 1, other);
        const float *__restrict ub = state_.u.row(y + 1, other);
        const float *__restrict vb = state_.v.row(y + 1, other);
        float *__restrict uu = system_.uu.row(y, color);
        float *__restrict uv = system_.uv.row(y, color);
        float *__restrict vv = system_.vv.row(y, color);
        float *__restrict bu = system_.bu.row(y, color);
        float *__restrict bv = system_.bv.row(y, color);
        float *__restrict right = system_.right.row(y, color);
        float *__restrict down = system_.down.row(y, color);
        HAMFLOW_INDEPENDENT
        for (int k = 0; k < count; ++k) {
            const float cl = edge_l[k] * (here[k] + side[k - 1]);
            const float cr = edge_r[k] * (here[k] + side[k]);
            const float ca = edge_a[k] * (here[k] + psi_a[k]);
            const float cb = edge_b[k] * (here[k] + psi_b[k]);
            right[k] = cr;
            down[k] = cb;
            bu[k] += cl * (us[k - 1] - u[k]) + cr * (us[k] - u[k]) + ca * (ua[k] - u[k]) +
                     cb * (ub[k] - u[k]);
            bv[k] += cl * (vs[k - 1] - v[k]) + cr * (vs[k] - v[k]) + ca * (va[k] - v[k]) +
                     cb * (vb[k] - v[k]);
            // Nothing pulls at a pixel without data and neighbors (a 1x1 image).
            const float sum = cl + cr + ca + cb + 1e-12f;
            const float a = uu[k] + sum, b = uv[k], d = vv[k] + sum;
            // Without neighbors (a single pixel) the data alone may leave one direction open.
            const float product = a * d, determinant = product - b * b, least = 1e-6f * product;
            const float inverse = p_.omega / (determinant > least ? determinant : least);
            uu[k] = d * inverse;
            uv[k] = -b * inverse;
            vv[k] = a * inverse;
        }
    }

    const Variational& p_;
    const Board& board_;
    const Forms& forms_;
    const State& state_;
    const System& system_;
    int next_;           // row whose psi' is needed next
    Buffer<float> psi_;  // three rows
};

// One color of a row, to the end of its padding, where all is zero.
void relax_row(const Board& board, const System& s, const State& state, float omega, int y,
               int color) {
    const int shift = board.shift(y, color), other = 1 - color;
    const int count = round_up(board.count(y, color), lanes);
    const float *__restrict bu = s.bu.row(y, color);
    const float *__restrict bv = s.bv.row(y, color);
    const float *__restrict uu = s.uu.row(y, color);
    const float *__restrict uv = s.uv.row(y, color);
    const float *__restrict vv = s.vv.row(y, color);
    const float *__restrict cl = s.right.row(y, other) + shift - 1;
    const float *__restrict cr = s.right.row(y, color);
    const float *__restrict ca = s.down.row(y - 1, other);
    const float *__restrict cb = s.down.row(y, color);
    const float *__restrict us = state.du.row(y, other) + shift;
    const float *__restrict vs = state.dv.row(y, other) + shift;
    const float *__restrict ua = state.du.row(y - 1, other);
    const float *__restrict va = state.dv.row(y - 1, other);
    const float *__restrict ub = state.du.row(y + 1, other);
    const float *__restrict vb = state.dv.row(y + 1, other);
    float *__restrict du = state.du.row(y, color);
    float *__restrict dv = state.dv.row(y, color);
    const float keep = 1 - omega;
    HAMFLOW_INDEPENDENT
    for (int k = 0; k < count; ++k) {
        const float pu = bu[k] + cl[k] * us[k - 1] + cr[k] * us[k] + ca[k] * ua[k] + cb[k] * ub[k];
        const float pv = bv[k] + cl[k] * vs[k - 1] + cr[k] * vs[k] + ca[k] * va[k] + cb[k] * vb[k];
        du[k] = keep * du[k] + (uu[k] * pu + uv[k] * pv);
        dv[k] = keep * dv[k] + (uv[k] * pu + vv[k] * pv);
    }
}

// Half a sweep updates the pixels of one color, and a row needs only that the rows beside it have
// had as many halves. So many halves are done in one pass over memory: in a first phase each block
// of rows does what it can without its neighbors, fewer halves toward its ends; in a second one
// the rest is done around the borders between blocks. Within a block, half t of row y follows half
// t - 1 of row y + 1, while all of these rows are in the cache.
class Relaxation {
   public:
    Relaxation(const Variational& p, const Board& board, const System& system,
               const State& state)
        : board_(board), system_(system), state_(state), omega_(p.omega) {}

    void run(int sweeps) {
        const int most = halves_per_pass();
        for (int done = 0; done < 2 * sweeps; done += most)
            pass(std::min(most, 2 * sweeps - done));
    }

   private:
    int halves_per_pass() const {
        constexpr std::size_t cache = 640 << 10;  // what a core has for itself
        const std::size_t row = 9 * 2 * board_.stride * sizeof(float);
        const int fit = static_cast<int>(std::min<std::size_t>(cache / row, 64));
        // A block needs twice as many rows as there are halves.
        const int most = board_.h / (2 * std::max(2, get_num_threads()));
        return std::max(2, std::min(fit, most) / 2 * 2);
    }

    void pass(int halves) {
        const RowBlocks blocks(board_.h, 2 * halves);
        for_blocks(blocks, [&](int begin, int end) {
            front(begin, end + halves, halves, [&](int half, int* from, int* to) {
                *from = begin == 0 ? 0 : begin + half;
                *to = end == board_.h ? end : end - half;
            });
        });
        parallel_for(blocks.count - 1, [&](int b) {
            const int border = blocks.begin(b + 1);
            front(border, border + 2 * halves, halves, [&](int half, int* from, int* to) {
                *from = border - half;
                *to = border + half;
            });
        });
    }

    // limits(half, &from, &to): the rows that half a sweep updates.
    template <class Limits>
    void front(int begin, int end, int halves, const Limits& limits) {
        for (int first = begin; first < end; ++first)
            for (int half = 0; half < halves; ++half) {
                const int y = first - half;
                int from, to;
                limits(half, &from, &to);
                if (y >= from && y < to) relax_row(board_, system_, state_, omega_, y, half & 1);
            }
    }

    const Board& board_;
    const System& system_;
    const State& state_;
    float omega_;
};
