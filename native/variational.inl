// The variational refinement: warps, updates of the robust weights, sweeps.

constexpr float largest_step = 2.0f;  // a linearization is good for about a pixel

class Solver {
   public:
    explicit Solver(const Variational& p)
        : p_(p), board_(p.h, p.w), fields_(board_, State::count + System::count),
          state_(fields_, 0), system_(fields_, State::count),
          stored_(board_, Forms::count, !again()), forms_(stored_, 0) {}

    void solve() {
        const RowBlocks blocks(p_.h, 16);
        for_blocks(blocks, [&](int begin, int end) {
            Buffer<float> right(p_.w + width, 0.0f), down(p_.w + width, 0.0f);
            for (int y = begin; y < end; ++y) start(y, right.data(), down.data());
        });
        if (p_.inner == 0 || p_.sweeps == 0) return;  // nothing would move
        Relaxation relaxation(p_, board_, system_, state_);
        for (int k = 0; k < p_.warps; ++k) {
            for_blocks(blocks, [&](int begin, int end) { linearize(begin, end); });
            relaxation.run(p_.sweeps);
            for (int i = 1; i < p_.inner; ++i) {
                for_blocks(blocks, [&](int begin, int end) {
                    Assembly assembly(p_, board_, forms_, state_, system_, begin);
                    for (int y = begin; y < end; ++y) assembly.row(y);
                });
                relaxation.run(p_.sweeps);
            }
            const float limit =
                k + 1 == p_.warps ? p_.limit : std::numeric_limits<float>::infinity();
            for_blocks(blocks, [&](int begin, int end) {
                for (int y = begin; y < end; ++y) add(y, limit);
            });
        }
    }

   private:
    // Whether forms are needed a second time: otherwise those of a row are forgotten.
    bool again() const { return p_.inner > 1; }

    void linearize(int begin, int end) {
        const Fields row(board_, Forms::count, true);
        const Forms forms = again() ? forms_ : Forms(row, 0);
        Linearization linearization(p_, board_, forms, begin);
        Assembly assembly(p_, board_, forms, state_, system_, begin);
        for (int y = begin; y < end; ++y) {
            linearization.row(y);
            assembly.row(y);
        }
    }

    void start(int y, float* __restrict right, float* __restrict down) {
        const int w = p_.w;
        const std::size_t row = static_cast<std::size_t>(y) * w;
        std::copy_n(p_.start + 2 * row, 2 * w, p_.flow + 2 * row);
        fields_.clear_margins(board_, y);
        for (int color = 0; color < 2; ++color) {
            std::fill_n(state_.du.row(y, color), board_.count(y, color), 0.0f);
            std::fill_n(state_.dv.row(y, color), board_.count(y, color), 0.0f);
        }
        split_row(board_, y, p_.start + 2 * row, 2, state_.u);
        split_row(board_, y, p_.start + 2 * row + 1, 2, state_.v);
        const float* here = p_.f0 + row * channels;
        contrasts(here, here + channels, w - 1, right);
        right[w - 1] = 0;
        if (y + 1 < p_.h)
            contrasts(here, here + static_cast<std::size_t>(w) * channels, w, down);
        else
            std::fill_n(down, w, 0.0f);
        if (p_.right) {
            const float *__restrict r = p_.right + row, *__restrict d = p_.down + row;
            for (int x = 0; x < w; ++x) {
                right[x] *= r[x];
                down[x] *= d[x];
            }
        }
        split_row(board_, y, right, 1, state_.right);
        split_row(board_, y, down, 1, state_.down);
    }

    // alpha / 2 times the weights by contrast; writes up to the end of the last vector.
    void contrasts(const float* __restrict a, const float* __restrict b, int count,
                   float* __restrict out) const {
        for (int x = 0; x < count; ++x) {
            const float *p = a + x * channels, *q = b + x * channels;
            out[x] = std::fabs(p[0] - q[0]) + std::fabs(p[1] - q[1]) + std::fabs(p[2] - q[2]);
        }
        const float falling = -p_.kappa / 3, factor = 0.5f * p_.alpha;
        for (int x = 0; x < count; x += width)
            store(out + x, factor * exponential(falling * load<Floats>(out + x)));
    }

    void add(int y, float limit) {
        for (int parity = 0; parity < 2; ++parity) {
            const int color = board_.color(y, parity), count = board_.count(y, color);
            const std::size_t first = 2 * (static_cast<std::size_t>(y) * p_.w + parity);
            add(state_.u.row(y, color), state_.du.row(y, color), count, limit, p_.start + first,
                p_.flow + first);
            add(state_.v.row(y, color), state_.dv.row(y, color), count, limit,
                p_.start + first + 1, p_.flow + first + 1);
        }
    }

    static void add(float* __restrict u, float* __restrict du, int count, float limit,
                    const float* __restrict start, float* __restrict flow) {
        const auto bounded = [](float x, float low, float high) HAMFLOW_INLINE_LAMBDA {
            x = x < high ? x : high;
            return x > low ? x : low;
        };
        for (int k = 0; k < count; ++k) {
            const float moved = u[k] + bounded(du[k], -largest_step, largest_step);
            u[k] = bounded(moved, start[4 * k] - limit, start[4 * k] + limit);
            flow[4 * k] = u[k];
            du[k] = 0;
        }
    }

    const Variational& p_;
    Board board_;
    Fields fields_;
    State state_;
    System system_;
    Fields stored_;
    Forms forms_;
};

void refine_variational(const Variational& problem) { Solver(problem).solve(); }
