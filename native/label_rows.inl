// Rows of labels, the d labels of one pixel side by side: min-sum on chains computes with them.
//
// Two arithmetics, both exact. `Labels16` is int16 fixed point; `Labels32` holds whole numbers in
// float32, where sums below 2^24 are exact too, so everything said of integers holds for both.
// The caller chooses the scale of the costs so small that no sum leaves the range: the bounds are
// derived in chains.inl, and the scale follows from them in hamflow/crf/arithmetic.py.

// Widths and padding of rows of d labels, and where values beyond the last label go. With
// `fixed` > 0 the row is known to be so many full vectors, and loops over it are unrolled.
template <class A, int fixed>
struct RowShape {
    using T = typename A::T;
    using V = typename A::V;

    int d, padded, vectors;
    bool ragged;  // the last vector is not full

    explicit RowShape(int labels)
        : d(labels), padded(round_up(labels, A::width)), vectors(padded / A::width),
          ragged(padded != labels) {
        for (int k = 0; k < A::width; ++k)
            tail_[k] = k < d - (padded - A::width) ? A::lowest : A::big;
    }

    // body(j, finish) for each vector j, where finish(v) makes what lies beyond the last label
    // lose against everything.
    template <class Body>
    HAMFLOW_INLINE void for_each(const Body& body) const {
        const auto same = [](V v) HAMFLOW_INLINE_LAMBDA { return v; };
        if constexpr (fixed > 0) {
            unroll<fixed>([&](auto j) HAMFLOW_INLINE_LAMBDA { body(int(j), same); });
            return;
        }
        const int full = vectors - ragged;
        for (int j = 0; j < full; ++j) body(j, same);
        if (ragged) {
            const V tail = A::loadu(tail_);
            body(full, [&](V v) HAMFLOW_INLINE_LAMBDA { return A::max(v, tail); });
        }
    }
    // Vector j of a row of the volume, which is not padded.
    HAMFLOW_INLINE V load(const T* row, int j) const {
        if (fixed > 0 || !ragged || j + 1 < vectors) return A::loadu(row + j * A::width);
        T part[A::width] = {};
        std::memcpy(part, row + j * A::width, (d - j * A::width) * sizeof(T));
        return A::loadu(part);
    }
    HAMFLOW_INLINE void store(T* row, int j, V v) const {
        if (fixed > 0 || !ragged || j + 1 < vectors) return A::storeu(row + j * A::width, v);
        T part[A::width];
        A::storeu(part, v);
        std::memcpy(row + j * A::width, part, (d - j * A::width) * sizeof(T));
    }

   private:
    T tail_[A::width];
};

// Rows with a vector of losing values before the first and after each one: what labels -1 and d
// are to their neighbors.
template <class A>
class PaddedRows {
    using T = typename A::T;

   public:
    template <class Shape>
    PaddedRows(const Shape& shape, int count)
        : stride_(shape.padded + A::width),
          data_(static_cast<std::size_t>(count) * stride_ + A::width, A::big) {}
    HAMFLOW_INLINE T* row(int i) {
        return data_.data() + A::width + static_cast<std::size_t>(i) * stride_;
    }

   private:
    std::size_t stride_;
    Buffer<T> data_;
};

// A message's neighbors: min over 1 <= |t| <= reach of in[k + t] + first + slope (|t| - 1). With
// reach 1 (the two-level rho) they are shifted out of three vectors at hand: a load of in[k - 1]
// or in[k + 1] would have to wait for two stores, as the row has just been written. A larger
// reach, a power of two, is built up by doubling.
template <class A, bool two_level, int fixed>
class Neighbors {
    using T = typename A::T;
    using V = typename A::V;

   public:
    Neighbors(const RowShape<A, fixed>& shape, int reach)
        : shape_(shape), reach_(reach), margin_(round_up(reach, A::width)),
          below_(two_level ? 0 : shape.padded + 2 * margin_, A::big),
          above_(two_level ? 0 : shape.padded + 2 * margin_, A::big) {}

    // body(j, m, finish) for each vector j of `in`, with m = min(in, neighbors): the message but
    // for its cap.
    template <class Body>
    HAMFLOW_INLINE void for_each(const T* in, const EdgeCost<T>& edge, const Body& body) {
        const V first = A::set1(edge.first);
        if constexpr (two_level) {
            V cur = A::loadu(in);
            auto low = A::between(A::set1(A::big), cur);
            shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
                const V next = A::loadu(in + (j + 1) * A::width);
                const auto high = A::between(cur, next);
                const V beside = A::min(A::below(low, cur), A::above(cur, high));
                body(j, A::min(cur, A::adds(beside, first)), finish);
                cur = next;
                low = high;
            });
        } else {
            build(in, edge);
            shape_.for_each([&](int j, auto finish) HAMFLOW_INLINE_LAMBDA {
                const int k = j * A::width;
                const V beside = A::min(A::loadu(below_.data() + margin_ + k),
                                        A::loadu(above_.data() + margin_ + k));
                body(j, A::min(A::loadu(in + k), A::adds(beside, first)), finish);
            });
        }
    }

   private:
    void build(const T* in, const EdgeCost<T>& edge) {
        T* below = below_.data() + margin_;
        T* above = above_.data() + margin_;
        for (int k = 0; k < shape_.padded; k += A::width) {
            A::storeu(below + k, A::loadu(in + k - 1));
            A::storeu(above + k, A::loadu(in + k + 1));
        }
        T slope = edge.slope;
        for (int t = 1; t < reach_; t *= 2) {
            const V step = A::set1(slope);
            // In place: the values that are read have not been written to in this round.
            for (int k = shape_.padded - A::width; k >= 0; k -= A::width)
                A::storeu(below + k, A::min(A::loadu(below + k),
                                            A::adds(A::loadu(below + k - t), step)));
            for (int k = 0; k < shape_.padded; k += A::width)
                A::storeu(above + k, A::min(A::loadu(above + k),
                                            A::adds(A::loadu(above + k + t), step)));
            slope = A::twice(slope);
        }
    }

    const RowShape<A, fixed>& shape_;
    int reach_, margin_;
    Buffer<T> below_, above_;  // min over t of in[k -+ t] + slope (t - 1)
};
