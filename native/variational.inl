// The variational refinement: warps, updates of the robust weights, sweeps.

constexpr float largest_step = 2.0f;  // a linearization is good for about a pixel

class Solver {
   public:
    explicit Solver(const Variational& p)
        : p_(p), board_(p.h, p.w), fields_(board_, Forms::count + State::count + System::count),
          forms_(fields_, 0), state_(fields_, Forms::count),
          system_(fields_, Forms::count + State::count) {}

    void solve() {
        const Blocks blocks(p_.h, 16);
        for_blocks(blocks, [&](int begin, int end) {
            for (int y = begin; y < end; ++y) start(y);
        });
        for (int k = 0; k < p_.warps; ++k) {
            for_blocks(blocks, [&](int begin, int end) {
                Linearization(p_, board_, forms_).rows(begin, end);
            });
            for (int i = 0; i < p_.inner; ++i) {
                for_blocks(blocks, [&](int begin, int end) {
                    Assembly(p_, board_, forms_, state_, system_).rows(begin, end);
                });
                Relaxation(p_, board_, system_, state_).run(p_.sweeps);
            }
            for_blocks(blocks, [&](int begin, int end) {
                for (int y = begin; y < end; ++y) add(y);
            });
        }
    }

   private:
    void start(int y) {
        const std::size_t row = static_cast<std::size_t>(y) * p_.w;
        split_row(board_, y, p_.flow + 2 * row, 2, state_.u);
        split_row(board_, y, p_.flow + 2 * row + 1, 2, state_.v);
        split_row(board_, y, p_.right + row, 1, state_.right);
        split_row(board_, y, p_.down + row, 1, state_.down);
        for (int color = 0; color < 2; ++color) {
            float *right = state_.right.row(y, color), *down = state_.down.row(y, color);
            const float factor = 0.5f * p_.alpha;
            for (int k = 0; k < board_.count(y, color); ++k) {
                right[k] *= factor;
                down[k] = y + 1 < p_.h ? factor * down[k] : 0;
            }
        }
        state_.right.row(y, board_.color(y, p_.w - 1))[(p_.w - 1) / 2] = 0;
    }

    void add(int y) {
        for (int parity = 0; parity < 2; ++parity) {
            const int color = board_.color(y, parity), count = board_.count(y, color);
            float* HAMFLOW_RESTRICT flow = p_.flow + 2 * (static_cast<std::size_t>(y) * p_.w + parity);
            float *HAMFLOW_RESTRICT u = state_.u.row(y, color), *HAMFLOW_RESTRICT v = state_.v.row(y, color);
            float *HAMFLOW_RESTRICT du = state_.du.row(y, color), *HAMFLOW_RESTRICT dv = state_.dv.row(y, color);
            const auto bounded = [](float step) HAMFLOW_INLINE_LAMBDA {
                step = step < largest_step ? step : largest_step;
                return step > -largest_step ? step : -largest_step;
            };
            for (int k = 0; k < count; ++k) {
                u[k] += bounded(du[k]);
                v[k] += bounded(dv[k]);
                du[k] = dv[k] = 0;
                flow[4 * k] = u[k];
                flow[4 * k + 1] = v[k];
            }
        }
    }

    const Variational& p_;
    Board board_;
    Fields fields_;
    Forms forms_;
    State state_;
    System system_;
};

void refine_variational(const Variational& problem) { Solver(problem).solve(); }
