// Belief propagation along lines: every open pixel tells the next one what it costs to follow it;
// see candidates.cpp. The lanes are the candidates.
HAMFLOW_INLINE void send(const Beliefs& p, std::size_t a, std::size_t b, int side, float weight) {
    const float* returned = p.message[side ^ 1] + a;
    float* message = p.message[side] + b;
    const auto cost_of = [&](int l) HAMFLOW_INLINE_LAMBDA {
        return Floats::load(p.belief + a + l) - Floats::load(returned + l);
    };
    Floats smallest = cost_of(0);
    for (int l = lanes; l < p.stride; l += lanes) smallest = min(smallest, cost_of(l));
    const Floats base(least(smallest)), cap(weight * p.cap), half(0.5f * weight);
    for (int l = 0; l < p.stride; l += lanes) {
        const Floats ua = Floats::load(p.u + a + l), va = Floats::load(p.v + a + l);
        const Floats ub = Floats::load(p.u + b + l), vb = Floats::load(p.v + b + l);
        Floats best = cap;
        for (int k = 0; k < p.stride; k += lanes) {
            const Floats costs = cost_of(k) - base;
            float cost[lanes];
            costs.store(cost);
            // What costs more than the cap can be no reason to follow.
            for (std::uint32_t few = bits_of(costs < cap); few; few &= few - 1) {
                const int m = __builtin_ctz(few);
                const std::size_t am = a + static_cast<std::size_t>(k + m);
                const std::size_t bm = b + static_cast<std::size_t>(k + m);
                const Floats apart = abs(ua - Floats(p.u[am])) + abs(va - Floats(p.v[am])) +
                                     abs(ub - Floats(p.u[bm])) + abs(vb - Floats(p.v[bm]));
                best = min(best, Floats(cost[m]) + half * apart);
            }
        }
        // A belief always includes all messages to its pixel.
        const Floats belief = Floats::load(p.belief + b + l);
        (belief + (best - Floats::load(message + l))).store(p.belief + b + l);
        best.store(message + l);
    }
}

// All rows or columns of a strip, there and back. Each line is a chain of its own, in which every
// message waits for the one before; so neighboring lines are swept side by side.
void sweep_strip(const Beliefs& p, bool rows, int begin, int end) {
    const int w = p.w, length = rows ? w : p.h, step = rows ? 1 : w, across = rows ? w : 1;
    const auto at = [&](int i) HAMFLOW_INLINE_LAMBDA {
        return static_cast<std::size_t>(p.number[i]) * static_cast<std::size_t>(p.stride);
    };
    const float* weights = rows ? p.right : p.down;
    for (const bool back : {false, true})
        for (int k = 0; k + 1 < length; ++k)
            for (int line = begin; line < end; ++line) {
                const int i = line * across + (back ? length - 2 - k : k) * step;
                if (p.number[i] < 0 || p.number[i + step] < 0) continue;
                const std::size_t a = at(i), b = at(i + step);
                send(p, back ? b : a, back ? a : b, (rows ? 0 : 2) + back, weights[i]);
            }
}
