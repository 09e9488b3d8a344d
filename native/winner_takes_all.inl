// The final argmin. The rule where the minimum is not unique: v from c^v, then u from the row at
// that v, each tie to the smallest |displacement|, then to the negative one. Flat and identical
// frames thus give exactly 0.

// The first label, in the order of preference, for which is_best(label) holds; one must.
template <class IsBest>
HAMFLOW_INLINE int nearest_label(int count, int first, const IsBest& is_best) {
    const int last = first + count - 1;
    int distance = first > 0 ? first : (last < 0 ? -last : 0);
    for (;; ++distance) {
        if (-distance >= first && -distance <= last && is_best(-distance - first))
            return -distance - first;
        if (distance <= last && distance >= first && is_best(distance - first))
            return distance - first;
    }
}

template <class T>
HAMFLOW_INLINE T minimum(const T* c, int count) {
    T best = c[0];
    for (int k = 1; k < count; ++k) best = c[k] < best ? c[k] : best;
    return best;
}

template <class T>
void best_labels(const T* costs, std::size_t n, int count, int first, std::int16_t* labels) {
    // Chunks of pixels rather than pixels: an index must be worth its handing out.
    constexpr std::size_t chunk = 4096;
    parallel_for(static_cast<int>((n + chunk - 1) / chunk), [&](int index) {
        const std::size_t end = std::min(n, (index + 1) * chunk);
        for (std::size_t i = index * chunk; i < end; ++i) {
            const T* c = costs + i * count;
            const T best = minimum(c, count);
            labels[i] = static_cast<std::int16_t>(
                nearest_label(count, first, [&](int k) { return c[k] == best; }));
        }
    });
}

HAMFLOW_INLINE int popcount64(std::uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_popcountll(x);
#else
    int n = 0;
    for (; x; x &= x - 1) ++n;
    return n;
#endif
}

// The flow of every pixel with label v_labels[pixel] and the best u there; cost(x, row, target x)
// is asked only for targets inside.
template <class T, class Cost>
HAMFLOW_INLINE void rescan(int h, int w, const Window& win, T outside,
                           const std::int16_t* v_labels, float* flow, const Cost& cost) {
    parallel_for(h, [&](int y) {
        Buffer<T> costs(win.du);
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            const int kv = v_labels[i];
            const LabelRange u = u_labels(win, x, w);
            for (int k = 0; k < win.du; ++k) costs[k] = outside;
            if (hamflow::v_labels(win, y, h).contains(kv))
                for (int k = u.lo; k < u.hi; ++k)
                    costs[k] = cost(x, y, x + win.u0 + k, y + win.v0 + kv);
            const T best = minimum(costs.data(), win.du);
            const int ku = nearest_label(win.du, win.u0, [&](int k) { return costs[k] == best; });
            flow[2 * i] = static_cast<float>(win.u0 + ku);
            flow[2 * i + 1] = static_cast<float>(win.v0 + kv);
        }
    });
}

void rescan_bits(const BitsPair& p, const Window& win, std::uint8_t outside,
                 const std::int16_t* v_labels, float* flow) {
    rescan<std::uint8_t>(p.h, p.w, win, outside, v_labels, flow,
                         [&](int x, int y, int tx, int ty) HAMFLOW_INLINE_LAMBDA {
        return static_cast<std::uint8_t>(
            popcount64(p.bits0[p.pixel(x, y)] ^ p.bits1[p.pixel(tx, ty)]));
    });
}

void rescan_phi(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_labels,
                float* flow) {
    rescan<float>(p.h, p.w, win, outside, v_labels, flow,
                  [&](int x, int y, int tx, int ty) HAMFLOW_INLINE_LAMBDA {
        return -scalar_product<0>(p.phi0 + (static_cast<std::size_t>(y) * p.w + x) * p.m,
                                  p.phi1 + (static_cast<std::size_t>(ty) * p.w + tx) * p.m, p.m);
    });
}
