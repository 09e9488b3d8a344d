// Winner takes all: the outer argmin of eq. 4, which solves the local model (eq. 2). Where the
// minimum is not unique, v comes from c^v and u from the row of costs at that v; each tie goes to
// the smallest |displacement|, then to the negative one. Flat and identical frames therefore give
// exactly 0.

// The first label, in the order of preference, for which is_best(label) holds; 0 if none does,
// as with costs that overflowed to NaN.
template <class IsBest>
HAMFLOW_INLINE int nearest_label(int count, int first, const IsBest& is_best) {
    const int last = first + count - 1;
    int distance = first > 0 ? first : (last < 0 ? -last : 0);
    const int furthest = std::max(std::abs(first), std::abs(last));
    for (; distance <= furthest; ++distance) {
        if (-distance >= first && -distance <= last && is_best(-distance - first))
            return -distance - first;
        if (distance <= last && distance >= first && is_best(distance - first))
            return distance - first;
    }
    return 0;
}

template <class T>
HAMFLOW_INLINE T minimum(const T* c, int count) {
    T best = c[0];
    for (int k = 1; k < count; ++k) best = c[k] < best ? c[k] : best;
    return best;
}

template <class T>
void best_labels(const T* costs, std::size_t n, int count, int first, std::int16_t* labels) {
    parallel_pieces<std::size_t>(n, 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const T* c = costs + i * count;
            const T best = minimum(c, count);
            labels[i] = static_cast<std::int16_t>(
                nearest_label(count, first, [&](int k) { return c[k] == best; }));
        }
    });
}

// The flow of every pixel with label v_labels[pixel] and the best u there. costs_of(i, j, n, out)
// writes the costs of pixel i and the n targets from j on.
template <class T, class CostsOf>
HAMFLOW_INLINE void rescan(int h, int w, const Window& win, T outside,
                           const std::int16_t* v_labels, float* flow, const CostsOf& costs_of) {
    parallel_for(h, [&](int y) {
        Buffer<T> costs(win.du);
        for (int x = 0; x < w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * w + x;
            const int kv = v_labels[i];
            const LabelRange u = u_labels(win, x, w);
            for (int k = 0; k < win.du; ++k) costs[k] = outside;
            if (hamflow::v_labels(win, y, h).contains(kv) && !u.empty())
                costs_of(i, static_cast<std::size_t>(y + win.v0 + kv) * w + (x + win.u0 + u.lo),
                         u.hi - u.lo, costs.data() + u.lo);
            const T best = minimum(costs.data(), win.du);
            const int ku = nearest_label(win.du, win.u0, [&](int k) { return costs[k] == best; });
            flow[2 * i] = static_cast<float>(win.u0 + ku);
            flow[2 * i + 1] = static_cast<float>(win.v0 + kv);
        }
    });
}

void rescan_bits(const BitsPair& p, const Window& win, std::uint8_t outside,
                 const std::int16_t* v_labels, float* flow) {
    const auto costs_of = [&](std::size_t i, std::size_t j, int n, std::uint8_t* out) {
        with_words(p, [&](auto words) {
            hamflow::row_distances<decltype(words)::value>(p.from(i), p.to(j), n, out);
        });
    };
    rescan<std::uint8_t>(p.h, p.w, win, outside, v_labels, flow, costs_of);
}

void rescan_phi(const PhiPair& p, const Window& win, float outside, const std::int16_t* v_labels,
                float* flow) {
    const auto costs_of = [&](std::size_t i, std::size_t j, int n, float* out) {
        for (int k = 0; k < n; ++k)
            out[k] = -scalar_product<0>(p.phi0 + i * p.m, p.phi1 + (j + k) * p.m, p.m);
    };
    rescan<float>(p.h, p.w, win, outside, v_labels, flow, costs_of);
}
