// Minorants of min-sum chains: the in-plane solver (DMM, eq. 7 of the paper) of the CRF's dual
// (eqs. 6b and 6c), one pass over all rows or all columns of one plane.
//
// For a chain with costs X and edge costs w rho, a minorant s has sum_i s_i(k_i) <= energy(k) for
// every labeling and sum_i min s_i = min energy: the slacks s of eq. 7. A pass computes
// X = lam - hold and hold = X - s. One `hold` is enough for both directions: a pass along rows
// reads only what the columns hold and writes only what the rows hold, so the new values can take
// the place of the old.
//
// Sequential minorant, from node 0 on, in normalized messages (msg(a) - min a, so that constants
// stay where they arise and nothing has to be summed up along the chain):
//     b[i]  = X[i] + msg(b[i+1]) - min b[i+1]              backward
//     m1    = msg(cm) - min cm,   M = m1 + b[i+1]
//     z     = share (M - min M) - m1
//     m     = msg(z) - min z,     n = msg(-m)              what i keeps, what i+1 gets
//     s[i]  = cm + m,             cm = X[i+1] + n
// Any m is valid, as w rho(x - k) >= m(x) + msg(-m)(k); and 0 <= share <= 1 makes it tight, in
// integers too. Three things need no computing:
//   * the chain's minimum, the sum of all min b[i];
//   * min M: by tightness it is the last min M + min z + min b[i+2] - min cm of the new cm;
//   * the cap of msg(-m): 0 <= m <= w tau2, so that no -m can exceed it.
//
// Range, with costs within +-C, m and -n within [0, tau2] (w <= 1): hold = -(n + m) within
// +-tau2, lam = hold + hold within +-2 tau2 after a pass and +-(C + 2 tau2) as a message between
// the planes, X within +-(C + 3 tau2), and its spread at most 2 C + 2 tau2. So cm, s and b are
// within +-(C + 4 tau2), M within +-(C + 5 tau2), M - min M and z at most 2 C + 4 tau2. In the
// hierarchical minorant X takes up an m and an n more on each side: 2 C + 6 tau2 bounds all.

template <class T, class Share>
HAMFLOW_INLINE int chain_length(const ChainPass<T, Share>& p) {
    return p.vertical ? p.h : p.w;
}

// Where node i of a chain is.
template <class T, class Share>
struct ChainNodes {
    std::ptrdiff_t start, step;

    ChainNodes(const ChainPass<T, Share>& p, int chain) {
        const int n = chain_length(p);
        start = p.vertical ? chain : static_cast<std::ptrdiff_t>(chain) * p.w;
        step = p.vertical ? p.w : 1;
        if (p.reverse) {
            start += (n - 1) * step;
            step = -step;
        }
    }
    HAMFLOW_INLINE std::ptrdiff_t pixel(int i) const { return start + i * step; }
    // The edge from node i to i + 1 belongs to the pixel that comes first in the image.
    HAMFLOW_INLINE std::ptrdiff_t edge(int i) const { return step > 0 ? pixel(i) : pixel(i + 1); }
};

// Up to `strip` neighboring chains, node by node in turn: columns of an image are then read in
// longer pieces.
template <class A, bool two_level>
class ChainSolver {
    using T = typename A::T;
    using V = typename A::V;
    using Pass = ChainPass<T, typename A::Share>;
    using Nodes = ChainNodes<T, typename A::Share>;

   public:
    ChainSolver(const Pass& pass, int strip)
        : p_(pass), n_(chain_length(pass)), strip_(strip), shape_(pass.d),
          neighbors_(shape_, pass.reach),
          x_(static_cast<std::size_t>(n_) * strip * shape_.padded), b_(shape_, n_ * strip),
          f_(shape_, pass.shares ? 0 : n_), work_(shape_, 2 + strip), low_(n_ * strip),
          low_cm_(strip), low_m_(strip) {}

    // Chains [first, first + count), count <= strip; their minima go to `minima`.
    void solve(int first, int count, typename A::Sum* minima) {
        first_ = first;
        count_ = count;
        sweep_back_all();
        for (int c = 0; c < count; ++c) {
            minima[c] = 0;
            for (int i = 0; i < n_; ++i) minima[c] += low_[slot(c, i)];
        }
        if (p_.shares)
            sequential();
        else
            for (int c = 0; c < count; ++c) hierarchical(c);
    }

   private:
    HAMFLOW_INLINE int slot(int c, int i) const { return i * strip_ + c; }
    HAMFLOW_INLINE T* x(int c, int i) {
        return x_.data() + static_cast<std::size_t>(slot(c, i)) * shape_.padded;
    }
    HAMFLOW_INLINE T* b(int c, int i) { return b_.row(slot(c, i)); }
    HAMFLOW_INLINE Nodes nodes(int c) const { return Nodes(p_, first_ + c); }
    HAMFLOW_INLINE EdgeCost<T> edge(int c, int i) const { return p_.edges[nodes(c).edge(i)]; }

    // X = lam - hold, and b of all nodes with their minima.
    void sweep_back_all() {
        for (int i = n_ - 1; i >= 0; --i) {
            for (int c = 0; c < count_; ++c) {
                const std::ptrdiff_t at = nodes(c).pixel(i) * p_.d;
                if (i >= ahead) fetch(nodes(c).pixel(i - ahead) * p_.d);
                T* xs = x(c, i);
                const T* lam = p_.lam + at;
                const T* hold = p_.hold + at;
                const auto source = [=](int j) HAMFLOW_INLINE_LAMBDA {
                    const V v = A::sub(shape_.load(lam, j), shape_.load(hold, j));
                    A::storeu(xs + j * A::width, v);
                    return v;
                };
                T& low = low_[slot(c, i)];
                if (i + 1 < n_)
                    accumulate(source, b(c, i + 1), low_[slot(c, i + 1)], edge(c, i), b(c, i), low);
                else
                    accumulate(source, nullptr, T(0), EdgeCost<T>{}, b(c, i), low);
            }
        }
    }
    HAMFLOW_INLINE void fetch(std::ptrdiff_t at) const {
        for (int k = 0; k < p_.d; k += 64 / static_cast<int>(sizeof(T))) {
            prefetch(p_.lam + at + k);
            prefetch(p_.hold + at + k);
        }
    }

    // out = source + msg(in) - low_in, and its minimum; without `in`, out = source.
    template <class Source>
    HAMFLOW_INLINE void accumulate(const Source& source, const T* in, T low_in, EdgeCost<T> e,
                                   T* out, T& low_out) {
        V low = A::set1(A::big);
        if (in) {
            const V cap = A::set1(e.cap), less = A::set1(low_in);
            neighbors_.for_each(in, e, [&](int j, V m, auto finish) HAMFLOW_INLINE_LAMBDA {
                const V v = finish(A::add(source(j), A::min(A::sub(m, less), cap)));
                A::storeu(out + j * A::width, v);
                low = A::min(low, v);
            });
        } else {
            shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
                const V v = finish(source(j));
                A::storeu(out + j * A::width, v);
                low = A::min(low, v);
            });
        }
        low_out = A::first(A::min_across(low));
    }

    // z = share (m1 + b - low_m) - m1 with m1 = msg(cm) - low_cm; returns min z in all lanes.
    HAMFLOW_INLINE V keep(const T* cm, V low_cm, EdgeCost<T> e, const T* b, V low_m,
                          typename A::Share share, T* z) {
        const V cap = A::set1(e.cap);
        const auto part = A::share_of(share);
        V low = A::set1(A::big);
        neighbors_.for_each(cm, e, [&](int j, V m, auto finish) HAMFLOW_INLINE_LAMBDA {
            const V m1 = A::min(A::sub(m, low_cm), cap);
            const V rest = A::sub(A::add(m1, A::loadu(b + j * A::width)), low_m);
            const V v = finish(A::sub(A::times(rest, part), m1));
            A::storeu(z + j * A::width, v);
            low = A::min(low, v);
        });
        return A::min_across(low);
    }

    // minus_m = -(msg(z) - low_z); sink(j, m) sees each vector.
    template <class Sink>
    HAMFLOW_INLINE void hand_on(const T* z, V low_z, EdgeCost<T> e, T* minus_m, const Sink& sink) {
        const V cap = A::set1(e.cap), zero = A::set1(T(0));
        neighbors_.for_each(z, e, [&](int j, V c, auto finish) HAMFLOW_INLINE_LAMBDA {
            const V m = A::min(A::sub(c, low_z), cap);
            A::storeu(minus_m + j * A::width, finish(A::sub(zero, m)));
            sink(j, m);
        });
    }

    // Where a node's results go. Copies of the pass's pointers: a vector store could otherwise
    // have changed them, for all the compiler knows.
    struct Output {
        T *hold, *s, *lam;
    };
    HAMFLOW_INLINE Output output(int c, int i) const {
        const std::ptrdiff_t at = nodes(c).pixel(i) * p_.d;
        return {p_.hold + at, p_.s ? p_.s + at : nullptr, p_.lam + at};
    }
    HAMFLOW_INLINE void write(const Output& out, int j, V x, V s) const {
        shape_.store(out.hold, j, A::sub(x, s));
        if (out.s) {
            shape_.store(out.s, j, s);
            shape_.store(out.lam, j, A::sub(shape_.load(out.lam, j), s));
        }
    }

    void sequential() {
        for (int c = 0; c < count_; ++c) {
            low_m_[c] = low_[slot(c, 0)];
            T* cm = work_.row(2 + c);
            V low = A::set1(A::big);
            shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
                const V v = finish(A::loadu(x(c, 0) + j * A::width));
                A::storeu(cm + j * A::width, v);
                low = A::min(low, v);
            });
            low_cm_[c] = A::first(A::min_across(low));
        }
        for (int i = 0; i + 1 < n_; ++i)
            for (int c = 0; c < count_; ++c) advance(c, i);
        for (int c = 0; c < count_; ++c) {
            const Output out = output(c, n_ - 1);
            for (int j = 0; j < shape_.vectors; ++j)
                write(out, j, A::loadu(x(c, n_ - 1) + j * A::width),
                      A::loadu(work_.row(2 + c) + j * A::width));
        }
    }
    // Chain c from node i to i + 1.
    HAMFLOW_INLINE void advance(int c, int i) {
        T* z = work_.row(0);
        T* minus_m = work_.row(1);
        T* cm = work_.row(2 + c);
        const EdgeCost<T> e = edge(c, i);
        const Output out = output(c, i);
        const V low_cm = A::set1(low_cm_[c]);
        const V low_m = A::set1(static_cast<T>(low_m_[c] + low_[slot(c, i + 1)] - low_cm_[c]));
        const V low_z = keep(cm, low_cm, e, b(c, i + 1), low_m, p_.shares[i], z);
        const T* xs = x(c, i);
        hand_on(z, low_z, e, minus_m, [&](int j, V m) HAMFLOW_INLINE_LAMBDA {
            const V s = A::add(A::loadu(cm + j * A::width), m);
            write(out, j, A::loadu(xs + j * A::width), s);
        });
        const T* next = x(c, i + 1);
        V low = A::set1(A::big);
        neighbors_.for_each(minus_m, e, [&](int j, V n, auto finish) HAMFLOW_INLINE_LAMBDA {
            const V v = finish(A::add(A::loadu(next + j * A::width), n));
            A::storeu(cm + j * A::width, v);
            low = A::min(low, v);
        });
        low_cm_[c] = A::first(A::min_across(low));
        low_m_[c] = A::first(A::add(low_m, low_z));
    }

    // Splits the chain in the middle, shares out between the halves what the edge there decides,
    // and goes on with each half.
    void hierarchical(int c) {
        sweep_forward(c, 0, n_);
        split(c, 0, n_);
        for (int i = 0; i < n_; ++i) {
            const Output out = output(c, i);
            for (int j = 0; j < shape_.vectors; ++j) {
                const V before = A::sub(shape_.load(out.lam, j), shape_.load(out.hold, j));
                write(out, j, before, A::loadu(x(c, i) + j * A::width));
            }
        }
    }

    void sweep_forward(int c, int begin, int end) {
        T low = 0;
        for (int i = begin; i < end; ++i)
            accumulate(stored(c, i), i == begin ? nullptr : f_.row(i - 1), low,
                       i == begin ? EdgeCost<T>{} : edge(c, i - 1), f_.row(i), low);
    }
    void sweep_back(int c, int begin, int end) {
        T low = 0;
        for (int i = end - 1; i >= begin; --i)
            accumulate(stored(c, i), i == end - 1 ? nullptr : b(c, i + 1), low,
                       i == end - 1 ? EdgeCost<T>{} : edge(c, i), b(c, i), low);
    }
    HAMFLOW_INLINE auto stored(int c, int i) {
        const T* xs = x(c, i);
        return [xs](int j) HAMFLOW_INLINE_LAMBDA { return A::loadu(xs + j * A::width); };
    }
    HAMFLOW_INLINE void add_to_x(int c, int i, int j, V m) {
        T* to = x(c, i) + j * A::width;
        A::storeu(to, A::add(A::loadu(to), m));
    }

    // Nodes [begin, end); f and b are those of this part of the chain alone.
    void split(int c, int begin, int end) {
        if (end - begin < 2) return;
        const int middle = begin + (end - begin) / 2;  // the first node of the second half
        const EdgeCost<T> e = edge(c, middle - 1);
        T* z = work_.row(0);
        T* minus_m = work_.row(1);
        const T* cm = f_.row(middle - 1);
        const T* rest = b(c, middle);
        const V low_cm = least(cm);
        // With a share of nothing z is -m1, and min M is found first.
        keep(cm, low_cm, e, rest, low_cm, A::nothing, z);
        V low_m = A::set1(A::big);
        shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
            const V v = A::sub(A::loadu(rest + j * A::width), A::loadu(z + j * A::width));
            low_m = A::min(low_m, finish(v));
        });
        low_m = A::min_across(low_m);
        const V low_z = keep(cm, low_cm, e, rest, low_m, A::share(middle - begin, end - begin), z);
        hand_on(z, low_z, e, minus_m, [&](int j, V m) { add_to_x(c, middle - 1, j, m); });
        neighbors_.for_each(minus_m, e, [&](int j, V n, auto) { add_to_x(c, middle, j, n); });
        sweep_back(c, begin, middle);
        sweep_forward(c, middle, end);
        split(c, begin, middle);
        split(c, middle, end);
    }
    HAMFLOW_INLINE V least(const T* row) const {
        V low = A::set1(A::big);
        for (int j = 0; j < shape_.vectors; ++j) low = A::min(low, A::loadu(row + j * A::width));
        return A::min_across(low);
    }

    static constexpr int ahead = 2;  // nodes

    const Pass& p_;
    int n_, strip_, first_ = 0, count_ = 0;
    RowShape<A, 0> shape_;
    Neighbors<A, two_level, 0> neighbors_;
    Buffer<T> x_;
    PaddedRows<A> b_, f_, work_;  // work_: z, -m, and cm of each chain of the strip
    Buffer<T> low_;               // min b
    Buffer<T> low_cm_, low_m_;    // min cm and min M of each chain of the strip
};

template <class A, bool two_level>
typename A::Sum run_chains(const ChainPass<typename A::T, typename A::Share>& pass) {
    const int chains = pass.vertical ? pass.w : pass.h;
    // Rows are read in one piece anyhow, and a second one would no longer fit the cache.
    const int strip = pass.vertical ? 4 : 1;
    // A few pieces of neighboring strips for each thread: each makes its own room once.
    const int strips = (chains + strip - 1) / strip;
    const int pieces = std::min(strips, 8 * get_num_threads());
    Buffer<typename A::Sum> sums(static_cast<std::size_t>(chains));
    parallel_for(pieces, [&](int piece) {
        ChainSolver<A, two_level> solver(pass, strip);
        const auto border = [&](int i) {
            return static_cast<int>(static_cast<long long>(strips) * i / pieces) * strip;
        };
        for (int c = border(piece); c < std::min(chains, border(piece + 1)); c += strip)
            solver.solve(c, std::min(strip, chains - c), sums.data() + c);
    });
    typename A::Sum sum = 0;
    for (int c = 0; c < chains; ++c) sum += sums[c];  // in this order for any number of threads
    return sum;
}

#include "chains_abreast.inl"

template <class A, class Abreast>
typename A::Sum chain_pass(const ChainPass<typename A::T, typename A::Share>& pass) {
    using T = typename A::T;
    if (pass.reach == 1 && pass.shares) return run_abreast<Abreast>(pass);
    if (pass.fresh) {
        const std::size_t row = static_cast<std::size_t>(pass.w) * pass.d;
        parallel_for(pass.h, [&](int y) { std::fill_n(pass.hold + y * row, row, T(0)); });
    }
    return pass.reach > 1 ? run_chains<A, false>(pass) : run_chains<A, true>(pass);
}

std::int64_t chain_pass16(const ChainPass16& pass) {
    return chain_pass<Labels16, Chains16>(pass);
}
double chain_pass32(const ChainPass32& pass) { return chain_pass<Labels32, Chains32>(pass); }
