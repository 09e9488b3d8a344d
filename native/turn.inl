// Turns vectors of labels into vectors of chains, and back. A vector consists of pieces of `group`
// labels; row r holds those of the chains r, r + group, ...
template <class A>
struct Turn {
    using T = typename A::T;
    using V = typename A::V;
    static constexpr int group = A::group;
    static constexpr int log2_of(int n) { return n > 1 ? 1 + log2_of(n / 2) : 0; }

    // rows[k] then has label k of every chain: a transposition in each piece, by zips of the first
    // half of the rows with the second.
    static HAMFLOW_INLINE void transpose(V* rows) {
        unroll<log2_of(group)>([&](auto) HAMFLOW_INLINE_LAMBDA {
            V zipped[group];
            unroll<group / 2>([&](auto r) HAMFLOW_INLINE_LAMBDA {
                zipped[2 * r] = A::zip_low(rows[r], rows[r + group / 2]);
                zipped[2 * r + 1] = A::zip_high(rows[r], rows[r + group / 2]);
            });
            unroll<group>([&](auto r) HAMFLOW_INLINE_LAMBDA { rows[r] = zipped[r]; });
        });
    }
};
