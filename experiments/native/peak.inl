// The instructions of the kernels on registers alone, without loads and stores: the rate that the
// kernels could reach at most. The level supplies `opaque(v)`, after which the compiler must assume
// that v has changed, so that it computes everything again, and `RegisterMix`, the instructions of
// `Bits::distances` for one vector of labels and two pixels. Each function returns the amount of
// work in one round.

inline double peak_min_projection(long long rounds) {
    using V = Bits<1>::V;
    RegisterMix mix;
    V best_a = Bits<1>::set1(0x7f), best_b = best_a, row_a = best_a, row_b = best_a;
    // Their values are equal, but the compiler must not merge them.
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    for (long long round = 0; round < rounds; ++round) {
        unroll<Bits<1>::block>([&](auto) HAMFLOW_INLINE_LAMBDA {
            V da, db;
            mix.distances(da, db);
            best_a = Bits<1>::min(best_a, opaque(da));
            best_b = Bits<1>::min(best_b, opaque(db));
            row_a = Bits<1>::min(row_a, da);
            row_b = Bits<1>::min(row_b, db);
        });
    }
    opaque(best_a), opaque(best_b), opaque(row_a), opaque(row_b);
    return 2.0 * Bits<1>::block * Bits<1>::lanes;
}

inline double peak_fused_multiply_add(long long rounds) {
    constexpr int chains = Floats::rows * Floats::vectors;  // as many as in the kernel
    typename Floats::F sum[chains], a = Floats::set1(0.5f), b = a;
    unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA { sum[c] = Floats::zero(); });
    for (long long round = 0; round < rounds; ++round)
        unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA {
            sum[c] = Floats::fma(opaque(a), b, sum[c]);
        });
    unroll<chains>([&](auto c) HAMFLOW_INLINE_LAMBDA { opaque(sum[c]); });
    return static_cast<double>(chains) * Floats::width;
}
