// The sequential minorant of chains.inl for the two-level rho, for as many neighboring chains at a
// time as a vector has lanes: each lane is a chain of its own. Labels next to each other are then
// vectors next to each other, so nothing is shifted between lanes, no minimum is taken across
// them, no vector is partly empty whatever the number of labels, and no step waits for the one
// before. What it costs is turning the volumes, in which the labels of a pixel lie side by side:
// X on the way in, hold on the way out.
//
// A pass stores X and b of its chains, [node][label][lane]; the formulas are those of chains.inl.
// The volumes are read and written in blocks of lanes x lanes pixels, through a room of the same
// shape: in long runs, which the hardware sees coming, for rows and for columns alike.

template <class A>
class ChainsAbreast {
    using T = typename A::T;
    using V = typename A::V;
    using Pass = ChainPass<T, typename A::Share>;
    static constexpr int lanes = A::width, group = A::group;

   public:
    explicit ChainsAbreast(const Pass& pass)
        : p_(pass), n_(chain_length(pass)), d_(pass.d), row_(std::size_t(pass.d) * lanes),
          pitch_(row_ + 64 / sizeof(T)), room_(lanes * pitch_ + lanes), x_(n_ * row_),
          b_(n_ * row_), z_(row_), cm_(row_), low_(std::size_t(n_) * lanes), first_(low_.size()),
          cap_(low_.size()) {}

    // Chains [begin, begin + count), count <= lanes; their minima go to `minima`.
    void solve(int begin, int count, typename A::Sum* minima) {
        begin_ = begin;
        count_ = count;
        for (int c = 0; c < lanes; ++c) {
            // Lanes without a chain of their own do what the last chain does.
            const int chain = std::min(c, count - 1);
            offset_[c] = p_.vertical ? std::ptrdiff_t(chain) * d_ : chain * pitch_;
        }
        const int blocks = (n_ + lanes - 1) / lanes;
        for (int block = blocks - 1; block >= 0; --block) {
            take(block);
            const int end = std::min(n_, (block + 1) * lanes);
            for (int i = end - 1; i >= block * lanes; --i) {
                if (block) ask_for(block - 1, i - block * lanes);
                turn_in(i);
                sweep_back(i);
            }
        }
        for (int c = 0; c < count; ++c) {
            minima[c] = 0;
            for (int i = 0; i < n_; ++i) minima[c] += low_[std::size_t(i) * lanes + c];
        }
        V low_cm = begin_forward(), low_m = of_node(low_, 0);
        for (int block = 0; block < blocks; ++block) {
            const int end = std::min(n_, (block + 1) * lanes);
            for (int i = block * lanes; i < end; ++i) {
                ask_for(block, i - block * lanes);
                if (i + 1 < n_) {
                    low_m = A::sub(A::add(low_m, of_node(low_, i + 1)), low_cm);
                    const V low_z = keep(i, low_cm, low_m);
                    low_cm = hand_on(i, low_z);
                    low_m = A::add(low_m, low_z);
                } else {
                    for (int k = 0; k < d_; ++k)
                        put(x(i), k, A::sub(at(x(i), k), at(cm_.data(), k)));
                }
                turn_out(i);
            }
            give(block);
        }
    }

   private:
    HAMFLOW_INLINE T* x(int i) { return x_.data() + i * row_; }
    HAMFLOW_INLINE T* b(int i) { return b_.data() + i * row_; }
    static HAMFLOW_INLINE V at(const T* row, int k) {
        return A::loadu(row + std::ptrdiff_t(k) * lanes);
    }
    static HAMFLOW_INLINE void put(T* row, int k, V v) {
        A::storeu(row + std::ptrdiff_t(k) * lanes, v);
    }
    HAMFLOW_INLINE V of_node(const Buffer<T>& values, int i) const {
        return A::loadu(values.data() + std::size_t(i) * lanes);
    }
    // Nodes are counted in the direction of the sweep, the image's pixels are not.
    HAMFLOW_INLINE int along(int i) const { return p_.reverse ? n_ - 1 - i : i; }

    // body(volume offset, room, count) for each row of the image that a block of nodes has a part
    // of: a run of `count` values.
    template <class Body>
    HAMFLOW_INLINE void for_each_run(int block, const Body& body) {
        const int nodes = std::min(lanes, n_ - block * lanes);
        const int node = std::min(along(block * lanes), along(block * lanes + nodes - 1));
        const int x0 = p_.vertical ? begin_ : node, y0 = p_.vertical ? node : begin_;
        const int rows = p_.vertical ? nodes : count_, columns = p_.vertical ? count_ : nodes;
        for (int r = 0; r < rows; ++r)
            body((std::size_t(y0 + r) * p_.w + x0) * d_, room_.data() + r * pitch_,
                 std::size_t(columns) * d_);
    }
    // Where node i is in the room, less the offset of its chain.
    HAMFLOW_INLINE T* room(int i) {
        const int nodes = std::min(lanes, n_ - i / lanes * lanes);
        const int node = p_.reverse ? nodes - 1 - i % lanes : i % lanes;
        return room_.data() + (p_.vertical ? node * pitch_ : std::size_t(node) * d_);
    }
    // X = lam - hold of a block to the room.
    void take(int block) {
        for_each_run(block, [&](std::size_t from, T* to, std::size_t count) {
            const T* lam = p_.lam + from;
            if (p_.fresh) {
                std::memcpy(to, lam, count * sizeof(T));
                return;
            }
            const T* hold = p_.hold + from;
            for (std::size_t k = 0; k < count; ++k) to[k] = static_cast<T>(lam[k] - hold[k]);
        });
    }
    // Hold of a block from the room to the volume; and s = X - hold, lam - s = the sum of what the
    // two directions hold.
    void give(int block) {
        for_each_run(block, [&](std::size_t to, const T* from, std::size_t count) {
            T* hold = p_.hold + to;
            if (p_.s) {
                T* lam = p_.lam + to;
                T* s = p_.s + to;
                for (std::size_t k = 0; k < count; ++k) {
                    const T both = static_cast<T>((p_.fresh ? T(0) : hold[k]) + from[k]);
                    s[k] = static_cast<T>(lam[k] - both);
                    lam[k] = both;
                }
            }
            std::memcpy(hold, from, count * sizeof(T));
        });
    }
    // One row of a block that is needed soon.
    HAMFLOW_INLINE void ask_for(int block, int row) {
        for_each_run(block, [&](std::size_t from, const T* to, std::size_t count) {
            if (to != room_.data() + row * pitch_) return;
            for (std::size_t k = 0; k < count; k += 64 / sizeof(T)) {
                prefetch(p_.lam + from + k);
                if (!p_.fresh) prefetch(p_.hold + from + k);
            }
        });
    }

    // body(k) for each group of labels, the last one ending with the last label: what two of them
    // share is turned twice.
    template <class Body>
    HAMFLOW_INLINE void for_each_group(const Body& body) const {
        for (int k = 0; k + group <= d_; k += group) body(k);
        if (d_ % group) body(d_ - group);
    }
    void turn_in(int i) {
        const T* from = room(i);
        T* out = x(i);
        if (d_ < group) {
            for (int k = 0; k < d_; ++k)
                for (int c = 0; c < lanes; ++c) out[k * lanes + c] = from[offset_[c] + k];
            return;
        }
        for_each_group([&](int k) HAMFLOW_INLINE_LAMBDA {
            V rows[group];
            unroll<group>([&](auto r) HAMFLOW_INLINE_LAMBDA {
                rows[r] = A::load_pieces(from + k, offset_ + r);
            });
            Turn<A>::transpose(rows);
            unroll<group>([&](auto r) HAMFLOW_INLINE_LAMBDA { put(out, k + r, rows[r]); });
        });
    }
    // What node i holds is where its X was.
    void turn_out(int i) {
        const T* from = x(i);
        T* out = room(i);
        if (d_ < group) {
            for (int k = 0; k < d_; ++k)
                for (int c = 0; c < lanes; ++c) out[offset_[c] + k] = from[k * lanes + c];
            return;
        }
        for_each_group([&](int k) HAMFLOW_INLINE_LAMBDA {
            V rows[group];
            unroll<group>([&](auto r) HAMFLOW_INLINE_LAMBDA { rows[r] = at(from, k + r); });
            Turn<A>::transpose(rows);
            unroll<group>([&](auto r) HAMFLOW_INLINE_LAMBDA {
                A::store_pieces(out + k, offset_ + r, rows[r]);
            });
        });
    }

    // body(k, beside, v) for each label, with its value and the lesser of its neighbors'.
    template <class Body>
    HAMFLOW_INLINE void for_each_label(const T* row, const Body& body) const {
        V before = A::set1(A::big), v = at(row, 0);
        for (int k = 0; k + 1 < d_; ++k) {
            const V after = at(row, k + 1);
            body(k, A::min(before, after), v);
            before = v;
            v = after;
        }
        body(d_ - 1, before, v);
    }
    // min(v, beside + first) less the minimum, and at most the cap: a normalized message. The sum
    // saturates: a single label has nothing beside it.
    static HAMFLOW_INLINE V message(V v, V beside, V first, V low, V cap) {
        return A::min(A::sub(A::min(v, A::adds(beside, first)), low), cap);
    }

    // b[i] = X[i] + msg(b[i + 1]) - min b[i + 1], and its minimum.
    void sweep_back(int i) {
        const T* xs = x(i);
        T* out = b(i);
        V low = A::set1(A::big);
        if (i + 1 == n_) {
            for (int k = 0; k < d_; ++k) {
                const V v = at(xs, k);
                put(out, k, v);
                low = A::min(low, v);
            }
        } else {
            // The edge from node i to i + 1 belongs to the pixel that comes first in the image.
            const std::size_t pixel = std::min(along(i), along(i + 1));
            for (int c = 0; c < lanes; ++c) {
                const std::size_t chain = begin_ + std::min(c, count_ - 1);
                const EdgeCost<T> e =
                    p_.edges[p_.vertical ? pixel * p_.w + chain : chain * p_.w + pixel];
                first_[std::size_t(i) * lanes + c] = e.first;
                cap_[std::size_t(i) * lanes + c] = e.cap;
            }
            const V first = of_node(first_, i), cap = of_node(cap_, i);
            const V less = of_node(low_, i + 1);
            for_each_label(b(i + 1), [&](int k, V beside, V v) HAMFLOW_INLINE_LAMBDA {
                const V sum = A::add(at(xs, k), message(v, beside, first, less, cap));
                put(out, k, sum);
                low = A::min(low, sum);
            });
        }
        A::storeu(low_.data() + std::size_t(i) * lanes, low);
    }

    // cm = X[0]; returns its minimum.
    V begin_forward() {
        V low = A::set1(A::big);
        for (int k = 0; k < d_; ++k) {
            const V v = at(x(0), k);
            put(cm_.data(), k, v);
            low = A::min(low, v);
        }
        return low;
    }
    // z = share (m1 + b - low_m) - m1 with m1 = msg(cm) - low_cm; returns min z.
    HAMFLOW_INLINE V keep(int i, V low_cm, V low_m) {
        const V first = of_node(first_, i), cap = of_node(cap_, i);
        const auto part = A::share_of(p_.shares[i]);
        const T* next = b(i + 1);
        T* z = z_.data();
        V low = A::set1(A::big);
        for_each_label(cm_.data(), [&](int k, V beside, V v) HAMFLOW_INLINE_LAMBDA {
            const V m1 = message(v, beside, first, low_cm, cap);
            const V rest = A::sub(A::add(m1, at(next, k)), low_m);
            const V kept = A::sub(A::times(rest, part), m1);
            put(z, k, kept);
            low = A::min(low, kept);
        });
        return low;
    }
    // m = msg(z) - low_z and hold = X - (cm + m) of node i, in the place of X; then
    // cm = X[i + 1] + msg(-m), whose minimum is returned. The second message follows the first by
    // one label.
    HAMFLOW_INLINE V hand_on(int i, V low_z) {
        const V first = of_node(first_, i), cap = of_node(cap_, i), zero = A::set1(T(0));
        const V big = A::set1(A::big);
        T* xs = x(i);
        const T* next = x(i + 1);
        const T* z = z_.data();
        T* cm = cm_.data();
        V low = big, before = big, own = big;
        const auto held = [&](int k, V beside, V v) HAMFLOW_INLINE_LAMBDA {
            const V m = message(v, beside, first, low_z, cap);
            put(xs, k, A::sub(A::sub(at(xs, k), at(cm, k)), m));
            return A::sub(zero, m);
        };
        const auto pass_on = [&](int k, V after) HAMFLOW_INLINE_LAMBDA {
            const V n = A::min(own, A::adds(A::min(before, after), first));
            const V v = A::add(at(next, k), n);
            put(cm, k, v);
            low = A::min(low, v);
            before = own;
            own = after;
        };
        if (d_ == 1) {
            own = held(0, big, at(z, 0));
        } else {
            own = held(0, at(z, 1), at(z, 0));
            V z0 = at(z, 0), z1 = at(z, 1);
            for (int k = 1; k + 1 < d_; ++k) {
                const V z2 = at(z, k + 1);
                pass_on(k - 1, held(k, A::min(z0, z2), z1));
                z0 = z1;
                z1 = z2;
            }
            pass_on(d_ - 2, held(d_ - 1, z0, z1));
        }
        pass_on(d_ - 1, big);
        return low;
    }

    const Pass& p_;
    int n_, d_, begin_ = 0, count_ = 0;
    std::size_t row_, pitch_;
    std::ptrdiff_t offset_[lanes];  // of each chain in the room
    Buffer<T> room_;                // a block: [row][column][label]
    Buffer<T> x_, b_;               // [node][label][lane]
    Buffer<T> z_, cm_;              // [label][lane]
    Buffer<T> low_;                 // min b, [node][lane]
    Buffer<T> first_, cap_;         // of the edges, [node][lane]
};

template <class A>
typename A::Sum run_abreast(const ChainPass<typename A::T, typename A::Share>& pass) {
    const int chains = pass.vertical ? pass.w : pass.h;
    const int strips = (chains + A::width - 1) / A::width;
    Buffer<typename A::Sum> sums(static_cast<std::size_t>(chains));
    const auto make_solver = [&] { return ChainsAbreast<A>(pass); };
    parallel_for_with(make_solver, strips, [&](ChainsAbreast<A>& solver, int strip) {
        const int c = strip * A::width;
        solver.solve(c, std::min(A::width, chains - c), sums.data() + c);
    });
    typename A::Sum sum = 0;
    for (int c = 0; c < chains; ++c) sum += sums[c];  // in this order for any number of threads
    return sum;
}
